package control_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Whatever fails meanwhile, after Reapply with everything there the tables are what the rows say.
func TestFaults(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &draw{r: rand.New(rand.NewPCG(seed, 77))}
			l := newLeaf(t, control.Config{Owners: owners()})
			m := model()
			names := []string{"bgp", "first name", "second name", "other", "another"}
			attached, blueOn := true, true
			for i := range 300 {
				switch d.n(12) {
				case 0:
					l.vtep.full = !l.vtep.full
				case 1:
					l.tun.full = !l.tun.full
				case 2:
					if attached {
						l.must(l.local.Detach())
					} else {
						var err error
						l.local, err = l.segment(red).Attach(l.pipe, 0)
						l.must(err)
					}
					attached = !attached
					if d.n(2) == 0 {
						l.Reapply()
					}
				case 3:
					if blueOn {
						vsi, err := l.sw.VSI(blue, nil)
						l.must(err)
						for _, a := range vsi.Attachments() {
							l.must(a.Detach())
						}
					} else {
						l.segment(blue)
					}
					blueOn = !blueOn
					if d.n(2) == 0 {
						l.Reapply()
					}
				}
				owner, u := names[d.n(len(names))], d.update()
				u.Loose = true
				if slices.Contains(u.Add, bad["route"]) { // the model would refuse it
					continue
				}
				err, wantErr := l.Program(owner, u), m.Program(owner, u)
				if got, want := refusedRows(err), refusedRows(wantErr); got != want {
					t.Fatalf("%d: %s %+v: refused %s, want %s", i, owner, u, got, want)
				}
				l.check()
				if d.n(20) > 0 {
					continue
				}
				l.vtep.full, l.tun.full = false, false
				if !attached {
					l.local, err = l.segment(red).Attach(l.pipe, 0)
					l.must(err)
					attached = true
				}
				l.segment(blue)
				blueOn = true
				l.Reapply()
				if got, want := view(l), view(m); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%d: %s %+v (%v):\n got %v\nwant %v", i, owner, u, err, got, want)
				}
				before := l.Stats()
				l.Reapply()
				if after := l.Stats(); after != before {
					t.Fatalf("Reapply again: %+v, %+v", before, after)
				}
			}
			for _, o := range names {
				l.Forget(o)
			}
			l.segment(blue)
			if got := view(l); len(got) != 0 || !l.Empty() || len(listed(l.vtep)) != 0 || len(listed(l.tun)) != 0 {
				t.Errorf("left after all is withdrawn: %v, peers %v %v", got, listed(l.vtep), listed(l.tun))
			}
		})
	}
}

// After the events have been handled, Reapply has nothing to do.
func TestHandleSuffices(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &draw{r: rand.New(rand.NewPCG(seed, 79))}
			cfg := control.Config{Owners: owners()}
			if seed%3 == 0 {
				cfg.Static = []string{"first name"}
			}
			l := newLeaf(t, cfg)
			events := l.sw.Events(control.Events...)
			defer events.Close()
			slots := map[frame.VNI]*vswitch.VSIConfig{}
			for _, vni := range []frame.VNI{red, blue} {
				l.arps[vni], _ = arp.NewTable(&arp.TableConfig{VNI: vni, Notify: l.sw.Notify})
				resp, err := arp.NewResponder(&arp.Config{Table: l.arps[vni]})
				l.must(err)
				slots[vni] = &vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: resp}}
				_, err = l.sw.VSI(vni, slots[vni])
				l.must(err)
			}
			names := []string{"bgp", "first name", "second name", "other", "another"}
			state := func() string {
				s := fmt.Sprint(view(l))
				for _, o := range names {
					for r, err := range l.Waiting(o) {
						s += fmt.Sprintf("\n%s %v: %v", o, r, err)
					}
				}
				return s
			}
			handle := func() {
				var all []frame.Event
				for {
					soon, stop := context.WithTimeout(t.Context(), 100*time.Microsecond)
					list, err := events.NextAll(soon)
					stop()
					if err != nil {
						break
					}
					all = append(all, list...)
				}
				l.Handle(all...)
			}
			on := true
			now := frame.Tick(1)
			for i := range 300 {
				now++
				what := ""
				k := d.n(14)
				switch k {
				case 0, 1:
					if on {
						l.must(l.local.Detach())
					} else {
						var err error
						l.local, err = l.segment(red).Attach(l.pipe, 0)
						l.must(err)
					}
					on = !on
					what = fmt.Sprint("port ", on)
				case 2:
					v, _ := l.sw.VSI(blue, nil)
					l.must(v.Delete())
					l.sw.VSI(blue, slots[blue])
					if d.n(2) == 0 {
						l.segment(blue)
					}
					what = "blue is new"
				case 3:
					l.segment(blue)
					what = "blue has a VTEP"
				case 4, 5:
					if on {
						n := byte(d.n(4))
						l.segment(red).FDB().Learn(mac(n), l.local.Dest(0), now)
						what = fmt.Sprint("speaks ", n)
					}
				case 6:
					if on {
						n, m := byte(1+d.n(3)), byte(d.n(4))
						l.arps[red].Learn(&arp.Claim{IP: ip(n), MAC: mac(m), From: l.local.Dest(0)}, now)
						what = fmt.Sprint("arp ", n, m)
					}
				case 7:
					n := byte(d.n(4))
					if e, ok := l.entry(red, mac(n)); ok && e.Origin == fdb.OriginLearned {
						l.segment(red).FDB().Delete(mac(n))
						what = fmt.Sprint("deleted ", n)
					}
				case 8:
					n := byte(1 + d.n(3))
					if e, ok := l.arps[red].Lookup(ip(n)); ok && e.Origin == arp.Snooped {
						l.arps[red].Delete(ip(n))
						what = fmt.Sprint("neighbour deleted ", n)
					}
				case 9:
					switch d.n(3) {
					case 0:
						l.segment(red).Flush()
					case 1:
						l.sw.Flush()
					case 2:
						if on {
							l.must(l.sw.FlushPort(l.pipe))
						}
					}
					what = "flush"
				default:
					owner, u := names[d.n(len(names))], d.update()
					err := l.Program(owner, u)
					what = fmt.Sprintf("%s %+v: %v", owner, u, err)
				}
				before := state()
				handle()
				got := state()
				w := l.writes()
				l.Reapply()
				if want := state(); got != want || l.writes() != w {
					t.Fatalf("%d: %s:\nbefore %v\n got %v\nReapply: %v %d %d", i, what, before, got, want, w, l.writes())
				}
				handle()
			}
		})
	}
}
