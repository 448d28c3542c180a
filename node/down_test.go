package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// mortal is a node in a synctest bubble whose devices are pipes that can die, and that can then be refused.
type mortal struct {
	*Node
	t   *testing.T
	log check.Log
	end context.CancelFunc // of Run

	mu      sync.Mutex
	refuse  error
	allowed map[string]bool // in spite of refuse
	opened  map[string]*port.Pipe
	tries   []time.Duration // since the last kill
	killed  time.Time
}

func newMortal(t *testing.T, cfg string) *mortal {
	t.Helper()
	m := &mortal{t: t, opened: map[string]*port.Pipe{}, allowed: map[string]bool{}}
	var err error
	m.Node, err = New(&Options{Log: slog.New(slog.NewTextHandler(&m.log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	must(t, err)
	m.open.device = func(c *Port) (vswitch.Port, error) {
		if c.Type == PortOwn {
			return m.own[c.Name], nil
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tries = append(m.tries, time.Since(m.killed))
		if m.refuse != nil && !m.allowed[c.Name] {
			return nil, m.refuse
		}
		p := port.NewPipe(&port.PipeConfig{Name: c.Name, MTU: c.MTU})
		m.opened[c.Name] = p
		return p, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.end = cancel
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	must(t, m.Apply(parse(t, cfg)))
	synctest.Wait()
	return m
}

// kill ends the device of a port; devices are refused from then on.
func (m *mortal) kill(name string) {
	m.mu.Lock()
	m.refuse, m.tries, m.killed = errors.New("no such device"), nil, time.Now()
	p := m.opened[name]
	m.mu.Unlock()
	p.Close()
	m.settle()
}

// settle waits until the node has seen what has happened: it handles events together, every 10 ms.
func (m *mortal) settle() {
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
}

// allow lets some devices be opened, without names all.
func (m *mortal) allow(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		m.allowed[name] = true
	}
	if len(names) == 0 {
		m.refuse = nil
	}
}

func (m *mortal) triedAt() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []time.Duration
	for _, d := range m.tries {
		list = append(list, d.Round(100*time.Millisecond))
	}
	return list
}

// wantDown compares the names of the ports that are down.
func (m *mortal) wantDown(names ...string) []DownPort {
	m.t.Helper()
	list := m.Down()
	var got []string
	for _, p := range list {
		got = append(got, p.Name)
	}
	if !slices.Equal(got, names) {
		m.t.Errorf("down: %q, want %q", got, names)
	}
	for name, up := range m.PortsUp() {
		if up == slices.Contains(names, name) {
			m.t.Errorf("port %s is up: %v", name, up)
		}
	}
	return list
}

func (m *mortal) wantLog(what string, times int) {
	m.t.Helper()
	if n := m.log.Count(what); n != times {
		m.t.Errorf("the log says %d times %q, want %d:\n%s", n, what, times, m.log.String())
	}
}

// carries reports whether a frame from one port reaches another.
func (m *mortal) carries(from, to string) bool {
	m.mu.Lock()
	a, b := m.opened[from], m.opened[to]
	m.mu.Unlock()
	for { // what is there already
		if _, err := b.Recv(ctxNow(m.t)); err != nil {
			break
		}
	}
	if a.Send(broadcast) != nil {
		return false
	}
	synctest.Wait()
	got, err := b.Recv(ctxNow(m.t))
	return err == nil && bytes.Equal(got, broadcast)
}

// ctxNow ends as soon as everything waits.
func ctxNow(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
	t.Cleanup(cancel)
	return ctx
}

var broadcast = append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 9, 1, 0x88, 0xb5}, make([]byte, 46)...)

const mortals = `{
  "ports": [{"name": "a"}, {"name": "b"}, {"name": "tun", "type": "tun"}],
  "policies": [{"name": "all"}],
  "segments": [
    {"vni": 10, "members": [{"port": "a", "policy": "all"}, {"port": "b"}], "fdb": [{"mac": "02:00:00:00:00:0a", "port": "a"}]},
    {"vni": 20, "members": [{"port": "a", "vlan": 5}, {"port": "b", "vlan": 5}]},
    {"vni": 30, "members": [{"port": "tun"}], "gateway": {"vrf": "red", "addresses": ["10.0.30.1/32"]}}
  ],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.9.0.0/16", "via": [{"segment": 30}]}]}]
}`

// A port whose device has died is listed, and is tried again after 100 ms, then after twice as long each time, and at last every
// 10 s. When it is back, so is all that the configuration has for it.
func TestDownBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		before := dump(m.Node)
		m.wantDown()
		since := time.Now()
		m.kill("a")
		p := m.wantDown("a")[0]
		if p.Type != PortTAP || !errors.Is(p.Err, net.ErrClosed) || p.Since.Sub(since) > 20*time.Millisecond || p.Next.Sub(p.Since) != firstWait ||
			!reflect.DeepEqual(p.Tags, map[frame.VNI][]uint32{10: {0}, 20: {5}}) {
			t.Errorf("%+v", p)
		}
		time.Sleep(45 * time.Second)
		synctest.Wait()
		want := []time.Duration{100, 300, 700, 1500, 3100, 6300, 12700, 22700, 32700, 42700}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if got := m.triedAt(); !slices.Equal(got, want) {
			t.Errorf("tried after %v, want %v", got, want)
		}
		q := m.wantDown("a")[0]
		if q.Err.Error() != `port "a": no such device` || q.Since != p.Since || !q.Next.After(time.Now()) {
			t.Errorf("%+v", q)
		}
		m.allow()
		time.Sleep(10 * time.Second)
		m.settle()
		m.wantDown()
		if got := dump(m.Node); !slices.Equal(got, before) {
			t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
		if !m.carries("a", "b") || !m.carries("b", "a") {
			t.Error("it carries no frames")
		}
		m.wantLog(`msg="a port is down" port=a`, 1)
		m.wantLog(`msg="a port is back" port=a after=52.7s`, 1)
	})
}

// The waits of a port that fails as soon as it is back go on; those of one that has run for a second begin again.
func TestDownFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		for _, c := range []struct{ runs, wait time.Duration }{{0, 100}, {500, 200}, {500, 400}, {1100, 100}, {0, 200}} {
			time.Sleep(c.runs * time.Millisecond)
			m.kill("a")
			m.allow()
			if p := m.wantDown("a")[0]; p.Next.Sub(p.Since) != c.wait*time.Millisecond {
				t.Errorf("after %v: tried again after %v, want %v", c.runs*time.Millisecond, p.Next.Sub(p.Since), c.wait*time.Millisecond)
			}
			time.Sleep(c.wait * time.Millisecond)
			m.settle()
			m.wantDown()
		}
	})
}

// While a port is down everything else changes, and the port itself, too; a port that is new must open.
func TestDownApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		full := dump(m.Node)
		m.kill("a")
		p := m.wantDown("a")[0]
		m.kill("tun")
		m.wantDown("a", "tun")
		change := func(edit func(*Config)) error {
			t.Helper()
			return m.Apply(changed(t, m.Config(), edit))
		}
		must(t, change(func(c *Config) {
			c.Segments = append(c.Segments, Segment{VNI: 40, Members: []Member{{Port: "a", VLAN: 7}, {Port: "b", VLAN: 7}}})
		}))
		if p = m.wantDown("a", "tun")[0]; !slices.Equal(p.Tags[40], []uint32{7}) {
			t.Errorf("%+v", p)
		}
		if err := change(func(c *Config) { c.Ports = append(c.Ports, Port{Name: "new"}) }); err == nil || !strings.Contains(err.Error(), `port "new": no such device`) {
			t.Errorf("a new port: %v", err)
		}
		m.fault = func(step string) error { // after the ports
			if step == "rows" {
				m.fault = nil
				return errors.New("refused")
			}
			return nil
		}
		if err := change(func(c *Config) { c.Segments[0].MaxMACs = 9 }); err == nil || strings.Contains(err.Error(), "restoring") {
			t.Errorf("a step fails: %v", err)
		}
		m.wantDown("a", "tun")
		// Other settings, with which it comes back.
		must(t, change(func(c *Config) { c.Ports[0].MTU = 1400 }))
		if q := m.wantDown("a", "tun")[0]; time.Until(q.Next) > firstWait {
			t.Errorf("%+v", q)
		}
		must(t, change(func(c *Config) { c.Segments = c.Segments[:3] }))
		m.allow("a")
		time.Sleep(firstWait)
		m.settle()
		m.wantDown("tun")
		if got := m.ports["a"].raw.MTU(0); got != 1400 {
			t.Errorf("MTU %d", got)
		}
		m.allow()
		// A change opens what it can.
		must(t, change(func(c *Config) { c.Ports[0].MTU = 0 }))
		m.wantDown()
		m.settle()
		if got := dump(m.Node); !slices.Equal(got, full) {
			t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(full, "\n"))
		}
		// A port that is deleted is down no more, and one with its name is new.
		m.kill("b")
		m.wantDown("b")
		last := m.Config()
		must(t, change(func(c *Config) {
			c.Ports, c.Segments = slices.Delete(c.Ports, 1, 2), slices.Delete(c.Segments, 1, 2)
			c.Segments[0].Members = c.Segments[0].Members[:1]
		}))
		m.wantDown()
		time.Sleep(time.Minute)
		if got := m.triedAt(); len(got) > 1 {
			t.Errorf("a port that is deleted was tried after %v", got)
		}
		if err := m.Apply(last); err == nil {
			t.Error("it opens")
		}
		m.allow()
		must(t, m.Apply(last))
		m.wantDown()
	})
}

// A change that fails, and whose old device cannot be had again either, leaves the port down.
func TestDownAfterRestoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		before := dump(m.Node)
		m.mu.Lock()
		m.refuse = errors.New("device or resource busy")
		m.mu.Unlock()
		err := m.Apply(changed(t, m.Config(), func(c *Config) { c.Ports[0].MTU = 1400 }))
		if err == nil || !strings.Contains(err.Error(), `restoring the old configuration failed: port "a": device or resource busy`) {
			t.Error(err)
		}
		if p := m.wantDown("a")[0]; p.Next.IsZero() {
			t.Errorf("%+v", p)
		}
		m.allow()
		time.Sleep(firstWait)
		m.settle()
		m.wantDown()
		if got := dump(m.Node); !slices.Equal(got, before) {
			t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
	})
}

// A port that opens but cannot be put back stays down and is closed; the others are not touched.
func TestDownMemberFails(t *testing.T) {
	for _, step := range []string{"member", "port", "gateway"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMortal(t, mortals)
				before := dump(m.Node)
				for _, name := range []string{"a", "tun"} {
					m.kill(name)
				}
				failures := 3
				m.fault = func(s string) error {
					if s == step && failures > 0 {
						failures--
						return fmt.Errorf("refused %d", failures)
					}
					return nil
				}
				m.allow()
				for end := time.Now().Add(10 * time.Second); len(m.Down()) > 0 && time.Now().Before(end); {
					m.settle()
				}
				m.wantDown()
				if failures > 0 {
					t.Errorf("%d failures to come", failures)
				}
				m.settle()
				if got := dump(m.Node); !slices.Equal(got, before) {
					t.Errorf("\n%s\nbefore:\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
				}
			})
		})
	}
}

// When the node ends, the switch lets go of its ports. None of them is called down, though somebody changes the node meanwhile.
func TestDownAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		m.Node.mu.Lock()
		m.end()
		m.failed("a", nil)
		m.Node.mu.Unlock()
		m.settle()
		m.wantLog("a port is down", 0)
	})
}

// A port of the program is listed until the program has added another.
func TestDownOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, mortals)
		seg, err := m.Segment(10, nil)
		must(t, err)
		p := port.NewPipe(&port.PipeConfig{Name: "mine"})
		must(t, seg.Add(p, nil))
		m.wantDown()
		p.Close()
		m.settle()
		d := m.wantDown("mine")[0]
		if d.Type != PortOwn || !d.Next.IsZero() {
			t.Errorf("%+v", d)
		}
		time.Sleep(time.Minute)
		must(t, m.Update(func(c *Config) error { c.Segments[1].MaxMACs = 7; return nil }))
		m.wantDown("mine")
		must(t, seg.Add(port.NewPipe(&port.PipeConfig{Name: "mine"}), nil))
		m.wantDown()
		m.wantLog("a port is down", 1)
		m.wantLog("a port is back", 1)
	})
}

// A port with an owner need not have its device when it is added: it is down until there is one. A port without is an error.
func TestOwnerMayBeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal(t, `{"segments": [{"vni": 5}]}`)
		m.mu.Lock()
		m.refuse = errors.New("no such device")
		m.mu.Unlock()
		const member = `"segments": [{"vni": 5, "members": [{"port": "p"}]}]}`
		if err := m.Apply(parse(t, `{"ports": [{"name": "p"}], `+member)); err == nil || len(m.Down()) != 0 {
			t.Errorf("%v, down %v", err, m.Down())
		}
		must(t, m.Apply(parse(t, `{"ports": [{"name": "p", "owner": "x"}], `+member)))
		if down := m.Down(); len(down) != 1 || !errors.Is(down[0].Err, m.refuse) {
			t.Errorf("down %v", down)
		}
		m.allow()
		time.Sleep(time.Second)
		synctest.Wait()
		if down := m.Down(); len(down) != 0 || m.Switch().VSIs()[0].Attachments() == nil {
			t.Errorf("down %v", down)
		}
	})
}
