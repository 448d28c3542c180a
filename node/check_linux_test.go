package node

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// settingsOf returns everything that can be set in a configuration, and sets all pointers.
func settingsOf(v reflect.Value) (list []reflect.Value) {
	switch v.Interface().(type) {
	case netip.Addr, netip.Prefix, frame.MAC:
		return []reflect.Value{v}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			list = settingsOf(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				list = append(list, settingsOf(f)...)
			}
		}
		return list
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, settingsOf(v.Index(i))...)
		}
	}
	return append(list, v)
}

func values[T any](parse func(string) (T, error), words string) (list []reflect.Value) {
	for _, w := range strings.Fields(words) {
		x, _ := parse(w) // what is none is the zero value
		list = append(list, reflect.ValueOf(x))
	}
	return list
}

// odd is values that may be refused, by the checks or by what is under them.
var odd = map[reflect.Type][]reflect.Value{
	reflect.TypeFor[netip.Addr](): values(netip.ParseAddr, `none 0.0.0.0 127.0.0.1 0.1.2.3 10.0.10.0 10.0.10.255 240.0.0.1 255.255.255.255 239.1.1.9 192.0.2.1 192.0.2.100
		: ::1 fd00::1 fe80::1 ff02::1 ::ffff:10.0.0.1`),
	reflect.TypeFor[netip.Prefix](): values(netip.ParsePrefix, `none 0.0.0.0/0 10.0.10.0/24 10.0.10.1/32 10.0.10.255/24 127.0.0.1/8 10.1.0.1/16 fd00::1/64 fe80::1/64 fe80::/10
		::ffff:10.0.0.0/104 10.0.20.1/24 224.0.0.1/32 0.0.0.1/24 255.255.255.255/32 240.0.0.1/8 10.5.0.1/32`),
	reflect.TypeFor[frame.MAC](): values(frame.ParseMAC, `none ff:ff:ff:ff:ff:ff 01:00:5e:00:00:01 02:00:00:00:ff:10 02:00:00:00:00:09 02:00:00:00:ee:20`),
	reflect.TypeFor[string](): values(func(s string) (string, error) { return strings.Trim(s, "'"), nil },
		"'' x . .. a/b tap%d sixteen-bytes-are stays moves ip p1 u1 red one hosts /nowhere/"+strings.Repeat("x", 100)),
	reflect.TypeFor[time.Duration](): {reflect.ValueOf(time.Duration(-1)), reflect.ValueOf(time.Second), reflect.ValueOf(613200 * time.Hour)},
}

var oddNumbers = []int64{0, -1, 1, 2, 3, 12, 13, 35, 63, 67, 68, 255, 256, 257, 4094, 4095, 65_000, 65_535, 1 << 24, 1<<24 - 1, 1 << 40}

// twist changes a setting to something that its type allows.
func twist(r *rand.Rand, v reflect.Value) {
	if values := odd[v.Type()]; values != nil {
		v.Set(values[r.IntN(len(values))])
		return
	}
	n := oddNumbers[r.IntN(len(oddNumbers))]
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		if !v.IsNil() {
			v.SetZero()
		} else {
			v.Set(reflect.New(v.Type().Elem()))
		}
	case reflect.Slice:
		switch l := v.Len(); {
		case l == 0:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case r.IntN(2) == 0:
			v.Set(reflect.AppendSlice(v.Slice3(0, l-1, l-1), v.Slice(l, l)))
		default:
			v.Set(reflect.Append(v.Slice3(0, l, l), v.Index(r.IntN(l))))
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint8:
		v.SetUint(uint64(n) % 4) // words of the configuration, mostly: the decoder knows them
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n) & (1<<v.Type().Bits() - 1))
	}
}

// What the checks take Apply takes, but for what the system refuses.
func TestCheckRefusesWhatApplyDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	applied, refused, b := 0, 0, newBench(t)
	for i := range 1000 {
		cfg := parse(t, []string{stepsOld, stepsNew}[i%2])
		var what []string
		for range 1 + r.IntN(2) {
			all := settingsOf(reflect.ValueOf(cfg).Elem())
			v := all[r.IntN(len(all))]
			twist(r, v)
			what = append(what, v.Type().String()+" "+settings(v))
		}
		if slices.ContainsFunc(cfg.Tunnels, func(c Tunnel) bool { return !c.Type.Valid() || c.Peers > vtep.ListedPerVNI }) {
			continue // no words for these
		}
		if slices.ContainsFunc(cfg.Ports, func(c Port) bool { return c.Type == PortOwn }) {
			continue // the program has none
		}
		if err := cfg.Check(); err != nil {
			refused++
			continue
		}
		if applied++; applied%20 == 0 {
			b.Close()
			b = newBench(t) // a fresh one, and one with a past
		}
		if err := b.Apply(cfg); err != nil {
			t.Errorf("%v: %v", what, err)
		}
	}
	t.Logf("%d applied, %d refused", applied, refused)
	if applied < 200 || refused < 200 {
		t.Errorf("%d applied, %d refused", applied, refused)
	}
}

// What the packages refuse has the key of the setting it is about.
func TestCheckAsksTheLibrary(t *testing.T) {
	for text, want := range map[string]string{
		`{"segments": [{"vni": 1, "ageing": "613200h"}]}`:                                                                                                                  "1:36: segments[0].ageing: 613200h0m0s: must be 1s to 596523h14m7s",
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "queues": 257}]}`:                                                                                                 "tunnels[0].queues: 257: must be 1 to 256, or 0 for 1",
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "bind": "e"}], "ports": [{"name": "e", "type": "interface"}]}`:                                                    `tunnels[0].bind: "e": is a port of type interface, which takes all that it receives`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "bind": "sixteen-bytes-are"}]}`:                                                                                   `tunnels[0].bind: "sixteen-bytes-are": must be at most 15 bytes`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "mtu": 49}]}`:                                                                                                     "tunnels[0].mtu: 49: must be at least 50 over 10.0.0.1",
		`{"tunnels": [{"name": "t", "local": "::ffff:10.0.0.1"}]}`:                                                                                                         "tunnels[0].local: ::ffff:10.0.0.1: must be 10.0.0.1",
		`{"tunnels": [{"name": "t", "local": "127.0.0.1", "underlay": "packet", "bind": "e"}]}`:                                                                            "tunnels[0]: afpacket: local address 127.0.0.1:4789: is not valid on a network",
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "underlay": "packet", "bind": "e", "prefix": "10.0.0.0/24", "gateway": "10.1.0.1"}]}`:                             "tunnels[0].gateway: 10.1.0.1: is not in 10.0.0.0/24",
		`{"tunnels": [{"name": "t", "local": "fd00::1"}], "segments": [{"vni": 1, "tunnel": "t", "flood": ["fe80::2"]}]}`:                                                  "flood[0]: fe80::2: requires a zone",
		`{"tunnels": [{"name": "t", "local": "10.0.0.1", "underlay": "packet", "bind": "e", "vlan": 5}], "segments": [{"vni": 1, "tunnel": "t", "flood": ["239.1.1.1"]}]}`: `segments[0].flood[0]: 239.1.1.1: tunnel "t" has a vlan, in which there are no multicast groups`,
		`{"vrfs": [{"name": "v", "routes": [{"prefix": "fd01::/16", "via": [{"segment": 1, "ip": "fe80::1%e"}]}]}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["fd00::1/64"]}}]}`:                              "via[0].ip: fe80::1%e: has a zone; must be the address alone",
		`{"vrfs": [{"name": "v"}], "policies": [{"name": "p", "rules": [{"action": "deny", "srcMACs": ["02:00:00:00:00:09"]}]}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "policy": "p", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24"]}}]}`: `segments[0].gateway.policy: "p": has rules with srcMACs or dstMACs`,
		`{"ports": [{"name": "p", "queues": 257}]}`: "ports[0].queues: 257: must be 1 to 256, or 0 for 1",
		`{"ports": [{"name": "tap%d"}]}`:            `ports[0].name: "tap%d": must be a device name`,
		`{"segments": [{"vni": 1, "neighbours": {"static": [{"ip": "127.0.0.1", "mac": "02:00:00:00:00:01"}]}}]}`:                                                                                                          "neighbours.static[0].ip: 127.0.0.1: is not valid on a network",
		`{"ports": [{"name": "u", "type": "tun"}], "vrfs": [{"name": "v"}], "segments": [{"vni": 1, "members": [{"port": "u"}], "neighbours": {"mode": "proxy"}, "gateway": {"vrf": "v", "addresses": ["10.0.0.1/32"]}}]}`: "segments[0].neighbours.mac: 00:00:00:00:00:00: must be the MAC of one host",
		`{"vrfs": [{"name": "v"}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["240.0.0.1/8"]}}]}`:                                                                           "segments[0].gateway.addresses[0]: 240.0.0.1/8: is not valid on a network",
		`{"vrfs": [{"name": "v"}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}, "fdb": [{"mac": "02:00:00:00:00:01", "port": "p"}]}]}`:                                                     "fdb[0].mac: 02:00:00:00:00:01: is the gateway's MAC",
		`{"vrfs": [{"name": "v", "routes": [{"prefix": "::ffff:10.0.0.0/104"}]}]}`:                                                                                                                                         "vrfs[0].routes[0].prefix: ::ffff:10.0.0.0/104: must be an IPv4 prefix",
		`{"control": {"socket": "/` + strings.Repeat("x", 110) + `"}}`:                                                                                                                                                     "control.socket: path too long",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A wrong network of a gateway says nothing about its next hops.
func TestCheckNextHopOfWrongNetwork(t *testing.T) {
	text := `{"vrfs": [{"name": "v", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 1, "ip": "10.0.0.2"}]}]}],
		"segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1/33"]}}]}`
	if _, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "via") {
		t.Error(err)
	}
}
