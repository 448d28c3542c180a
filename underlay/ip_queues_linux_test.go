package underlay

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// Each packet is read once, those of a flow by one reader, in order; and every queue gets
// some flows.
func TestIPQueues(t *testing.T) {
	a, b := wired(t)
	for _, tc := range []struct {
		local  [2]string
		queues int
	}{{wired4, 2}, {wired6, 2}, {wired4, 5}, {wired6, 5}} {
		ua, ub := both(t, a, b, tc.local, &IPConfig{Queues: tc.queues})
		eb := endpoint(t, ub.LocalAddr())
		const flows, rounds = 40, 5
		type seen struct{ reader, round int }
		var mu sync.Mutex
		last := map[string]seen{} // by flow
		count, short := 0, 0
		perReader := make([]int, 2*tc.queues)
		var wg sync.WaitGroup
		for k, r := range ub.Readers() {
			wg.Go(func() {
				batch := frame.NewBatch(nil)
				for {
					if err := r.Read(batch); err != nil {
						if !errors.Is(err, frame.ErrPaused) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					for i := range batch.Frames {
						f := &batch.Frames[i]
						p := f.Bytes()
						if len(p) == 1 {
							if short++; k > 1 {
								t.Errorf("reader %d got one of a byte", k)
							}
							continue
						}
						flow, round := string(p[12:20]), len(p)-100
						if f.Kind == frame.IPv6 {
							flow = string(p[8:40])
						}
						if x, ok := last[flow]; ok && (x.reader != k || x.round != round-1) || !ok && round != 0 {
							t.Errorf("round %d of a flow in reader %d, after %+v", round, k, x)
						}
						last[flow] = seen{k, round}
						perReader[k]++
						count++
					}
					mu.Unlock()
				}
			})
		}
		for round := range rounds {
			var ds []frame.Datagram
			for flow := range flows {
				for _, version := range []int{4, 6} {
					ds = append(ds, to(inside(t, version, flow, 1+flow%3, 100+round), 0, eb))
				}
			}
			send(t, ua, ds...)
		}
		send(t, ua, to("E", 0, eb), to("\x60", 0, eb)) // too short for addresses: queue 0
		deadline := time.AfterFunc(5*time.Second, ub.Pause)
		fake.Until(t, "all packets", func() bool { mu.Lock(); defer mu.Unlock(); return count+short >= 2*flows*rounds+2 })
		time.Sleep(20 * time.Millisecond)
		deadline.Stop()
		ub.Pause()
		wg.Wait()
		if st := ub.Stats(); len(last) != 2*flows || count != 2*flows*rounds || short != 2 || st.RxDatagrams != uint64(count)+2 || st.RxOverflow != 0 {
			t.Errorf("%d flows, %d packets; %+v", len(last), count, st)
		}
		for k, n := range perReader {
			if n < flows*rounds/tc.queues/4 {
				t.Errorf("reader %d of %d got %d", k, len(perReader), n)
			}
		}
		ua.Close()
		ub.Close()
	}
}

// The filters agree whose a packet is, whatever its length, in the interpreter of x/net too.
func TestIPFilters(t *testing.T) {
	for _, queues := range []int{2, 3, 256} {
		for _, is4 := range []bool{true, false} {
			for p := range datagrams.Protocols {
				vms := make([]*bpf.VM, queues)
				for q := range vms {
					prog := check.Must(queueFilter(q, queues, p, is4))(t)
					vms[q] = machine(t, prog)
				}
				for n := range 100 {
					x := pattern(n)
					if is4 {
						x = append([]byte{0x46, 23: 9}, x...)
					}
					takers := 0
					for q, vm := range vms {
						took := check.Must(vm.Run(x))(t)
						if took != 0 {
							takers++
							if least := []int{20, 40}[p]; n < least && q != 0 {
								t.Errorf("queue %d takes %d bytes", q, n)
							}
						}
					}
					if takers != 1 {
						t.Errorf("%d of %d queues take %d bytes of protocol %d", takers, queues, n, p)
					}
				}
			}
		}
	}
}

func machine(t *testing.T, prog []unix.SockFilter) *bpf.VM {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, f := range prog {
		raw = append(raw, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K})
	}
	all, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("not disassembled")
	}
	vm := check.Must(bpf.NewVM(all))(t)
	return vm
}

// What comes for another address is not received, before the socket is bound neither.
func TestIPStrays(t *testing.T) {
	a, b := wired(t)
	b.Addr("eth0", "10.0.0.3/24")
	var ua *IP
	a.Do(func() { ua = listenIP(t, wired4[0], nil) })
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		e3 := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 3}}
		ds := []frame.Datagram{to(inside(t, 4, 1, 2, 60), 0, e3, e3, e3, e3, e3, e3, e3, e3)}
		for {
			select {
			case <-stop:
				return
			default:
				send(t, ua, ds...)
				runtime.Gosched()
			}
		}
	})
	for range 50 {
		var ub *IP
		b.Do(func() { ub = listenIP(t, wired4[1], nil) })
		n, limit := 0, time.AfterFunc(2*time.Millisecond, ub.Pause)
		batch := frame.NewBatch(nil)
		for ub.Readers()[0].Read(batch) == nil {
			n += len(batch.Frames)
		}
		limit.Stop()
		ub.Close()
		if n > 0 {
			t.Errorf("%d packets for another address", n)
			break
		}
	}
	close(stop)
	wg.Wait()
}
