package policy

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// large returns 10,000 rules in three tiers, over 1000 sets of 1000 of some hosts, of which a tenth has a named port. Hosts come in
// groups of the same sets, as those of a service do.
func large(hosts, group int) *Config {
	cfg := &Config{Default: Deny, Sets: map[string][]netip.Prefix{}, PortSets: map[string][]Endpoint{}}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 1000 {
		name := fmt.Sprint(n)
		for g := range 1000 / group {
			first := (n*1000/group + g) * group
			if hosts < 1_000_000 {
				first = r.IntN(hosts/group) * group
			}
			for i := range group {
				cfg.Sets[name] = append(cfg.Sets[name], netip.PrefixFrom(host(first+i), 32))
				if i%10 == 0 {
					cfg.PortSets[name] = append(cfg.PortSets[name], Endpoint{host(first + i), 6, uint16(8000 + n%20)})
				}
			}
		}
	}
	cfg.Tiers = []Tier{{Name: "security"}, {Name: "platform", Default: new(Deny)}}
	for i := range 10_000 {
		x := Rule{
			Action: []Action{Allow, Deny, Allow, Pass}[i%4], Direction: Direction(1 + i%2), Protocol: []uint8{6, 17}[i/2%2],
			DstSet: fmt.Sprint(i % 1000), DstPorts: []PortRange{{uint16(i % 3000 * 5), uint16(i%3000*5 + 3)}},
		}
		switch i % 5 {
		case 0:
			x.DstPorts, x.DstPortSets = nil, []string{x.DstSet}
		case 1:
			x.NotSrcSets = []string{fmt.Sprint(i * 7 % 1000)}
		case 2:
			x.SrcSet, x.AllSrcSets = fmt.Sprint(i*3%1000), []string{fmt.Sprint(i * 11 % 1000)}
		case 3:
			x.Src = []netip.Prefix{netip.PrefixFrom(host(i*100), 24).Masked()}
		}
		switch {
		case i < 1000:
			cfg.Tiers[0].Rules = append(cfg.Tiers[0].Rules, x)
		case i < 9000:
			cfg.Tiers[1].Rules = append(cfg.Tiers[1].Rules, x)
		default:
			cfg.Rules = append(cfg.Rules, x)
		}
	}
	return cfg
}

func host(n int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 10<<24+uint32(n))
	return netip.AddrFrom4(b)
}

// populations are the hosts that the sets of large are made of: each is in one set, or in about ten.
func populations() map[string]*Config {
	return map[string]*Config{"apart": large(1_000_000, 1000), "overlapping": large(100_000, 50)}
}

// BenchmarkCompile is an Update with 10,000 rules and 1000 sets of 1000 addresses; "kept" has the rules alone, for the sets that
// are there.
func BenchmarkCompile(b *testing.B) {
	for name, cfg := range populations() {
		b.Run("all/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check.Must(New(cfg))(b)
			}
		})
		b.Run("kept/"+name, func(b *testing.B) {
			p := check.Must(New(cfg))(b)
			kept := *cfg
			kept.Sets, kept.PortSets = map[string][]netip.Prefix{}, map[string][]Endpoint{}
			for name := range cfg.Sets {
				kept.Sets[name], kept.PortSets[name] = nil, nil
			}
			b.ReportAllocs()
			for b.Loop() {
				must(b, p.Update(&kept))
			}
		})
	}
}

// BenchmarkChange is a member more or less in one of these sets: an address, and one with a named port.
func BenchmarkChange(b *testing.B) {
	for name, cfg := range populations() {
		p := check.Must(New(cfg))(b)
		i := 0
		b.Run("address/"+name, func(b *testing.B) {
			for b.Loop() {
				i++
				x := netip.PrefixFrom(host(i/2*7919%100_000), 32)
				change := p.AddToSet
				if i%2 == 1 {
					change = p.DeleteFromSet
				}
				must(b, change(fmt.Sprint(i/2%1000), x))
			}
		})
		b.Run("port/"+name, func(b *testing.B) {
			for b.Loop() {
				i++
				x := Endpoint{host(i / 2 * 7919 % 100_000), 6, 8080}
				change := p.AddToPortSet
				if i%2 == 1 {
					change = p.DeleteFromPortSet
				}
				must(b, change(fmt.Sprint(i/2%1000), x))
			}
		})
	}
}

// BenchmarkFrame is a packet judged without flows: by 10, 1000 and 10,000 rules with addresses and ports, of which the last
// matches; by as many in tiers with Pass; and with sets.
func BenchmarkFrame(b *testing.B) {
	x := pkt{kind: "udp", src: 1, dst: 2, sport: 1024, dport: 20000}
	for _, n := range []int{10, 1000, 10_000} {
		plain := &Config{Stateless: true, Default: Deny}
		for i := range n - 1 {
			plain.Rules = append(plain.Rules, Rule{
				Action: Action(i % 2), Src: []netip.Prefix{netip.PrefixFrom(host(i<<8), 24)}, Dst: []netip.Prefix{netip.PrefixFrom(host(i*3), 32)},
				Protocol: []uint8{6, 17}[i%2], DstPorts: []PortRange{{uint16(i * 6), uint16(i * 6)}},
			})
		}
		plain.Rules = append(plain.Rules, Rule{Protocol: 17, DstPorts: []PortRange{Port(20000)}})
		tiers := *plain
		tiers.Tiers = []Tier{{Name: "a", Rules: append(plain.Rules[:n/2:n/2], Rule{Action: Pass, Protocol: 17, DstPorts: []PortRange{Port(20000)}})}}
		tiers.Rules = plain.Rules[n/2:]
		for name, cfg := range map[string]*Config{"rules": plain, "tiers": &tiers} {
			p := check.Must(New(cfg))(b)
			f := x.frame(b)
			p.Ingress().Process(&f, frame.At{Worker: 1}) // makes the worker's counters
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.Ingress().Process(&f, frame.At{Worker: 1}) != frame.Continue {
						b.Fatal("dropped")
					}
				}
			})
		}
	}
	cfg := large(100_000, 50)
	cfg.Stateless, cfg.Default = true, Allow
	p := check.Must(New(cfg))(b)
	f := x.frame(b)
	p.Ingress().Process(&f, frame.At{Worker: 1})
	b.Run("large", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Ingress().Process(&f, frame.At{Worker: 1})
		}
	})
}
