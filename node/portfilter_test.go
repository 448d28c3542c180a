package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
)

// A ruler gives policies to ports whose names begin with "w", and counts what it is asked.
type ruler struct {
	t    *testing.T
	mu   sync.Mutex
	of   map[string]*policy.Policy
	news map[string]int // without a policy that the port has had
}

func (r *ruler) filter(name string, has policy.Filter) policy.Filter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name[0] != 'w' {
		return policy.Filter{}
	}
	if has.Policy != nil {
		return has
	}
	r.news[name]++
	r.of[name] = check.Must(policy.New(&policy.Config{Default: policy.Deny}))(r.t)
	return policy.Filter{Policy: r.of[name]}
}

func (r *ruler) set(name string, a policy.Action) {
	r.mu.Lock()
	p := r.of[name]
	r.mu.Unlock()
	must(r.t, p.Update(&policy.Config{Default: a}))
}

// A postman sends numbered frames to a port.
type postman struct {
	t  *testing.T
	to *port.Pipe
	n  byte
}

// passes wants the next frame of a port to arrive, and none before it.
func (p *postman) passes(from *port.Pipe, what string) {
	p.t.Helper()
	p.n++
	must(p.t, from.Send(greeting(p.n, 0)))
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	b, err := p.to.Recv(ctx)
	if err != nil || b[11] != p.n {
		p.t.Fatalf("%s: frame %d: %v, %v", what, p.n, b, err)
	}
}

// stops wants a policy to drop it.
func (p *postman) stops(from *port.Pipe, by *policy.Policy, what string) {
	p.t.Helper()
	p.n++
	was := by.Stats().Default.Packets
	must(p.t, from.Send(greeting(p.n, 0)))
	fake.Until(p.t, what+": a frame is dropped", func() bool { return by.Stats().Default.Packets != was })
}

func TestPortFilters(t *testing.T) {
	n := running(t)
	must(t, n.Policy(Policy{Name: "member"}))
	seg := addSegment(t, n, 10, nil)
	add := func(name, policy string) *port.Pipe {
		p := port.NewPipe(&port.PipeConfig{Name: name})
		must(t, seg.Add(p, &Member{Policy: policy}))
		return p
	}
	w, to := add("w1", ""), add("to", "")
	m := &postman{t: t, to: to}
	m.passes(w, "no policy")
	r := &ruler{t: t, of: map[string]*policy.Policy{}, news: map[string]int{}}
	must(t, n.SetPortFilters(r.filter))
	m.stops(w, r.of["w1"], "a closed port")
	r.set("w1", policy.Allow)
	m.passes(w, "an open port")

	late := add("w2", "member") // which has one before its first frame
	m.stops(late, r.of["w2"], "a closed port that came later")
	m.passes(w, "an open port behind a change of the configuration")
	r.set("w2", policy.Allow)
	m.passes(late, "two policies that are open")
	must(t, n.Update(func(c *Config) error { c.Policies[0].Default = policy.Deny; return nil }))
	m.stops(late, n.Policies()["member"], "the policy of the configuration behind that of the port")
	must(t, n.Update(func(c *Config) error { c.Policies[0].Default = policy.Allow; return nil }))
	check.Equal(t, "ports", fmt.Sprint(slices.Sorted(maps.Keys(n.PortFilters()))), "[w1 w2]")

	must(t, seg.Remove(w))
	check.Equal(t, "ports", fmt.Sprint(slices.Sorted(maps.Keys(n.PortFilters()))), "[w2]")
	w = add("w1", "")
	m.stops(w, r.of["w1"], "a port that is another one by its name")
	check.Equal(t, "asked", fmt.Sprint(r.news), "map[w1:2 w2:1]")

	var had []string
	must(t, n.SetPortFilters(func(name string, has policy.Filter) policy.Filter {
		if has.Policy != nil {
			had = append(had, name)
		}
		return has
	}))
	slices.Sort(had)
	check.Equal(t, "what ports have had", fmt.Sprint(had), "[w1 w2]")
	must(t, n.SetPortFilters(nil))
	m.passes(w, "no policy any more")
	check.Equal(t, "policies", len(n.PortFilters()), 0)
	n.Close()
	check.True(t, errors.Is(n.SetPortFilters(nil), net.ErrClosed), "a closed node takes policies")
}

// A guard that a port is given counts its frames before its policy does, from the first one on, and behind the member's own.
func TestPortGuards(t *testing.T) {
	n := running(t)
	seg := addSegment(t, n, 10, nil)
	g := check.Must(policy.NewGuard(&policy.GuardConfig{MACs: []frame.MAC{{2, 9}}}))(t)
	must(t, n.SetPortFilters(func(name string, has policy.Filter) policy.Filter {
		if name != "w" {
			return policy.Filter{}
		}
		return policy.Filter{Guard: g}
	}))
	w, to := port.NewPipe(&port.PipeConfig{Name: "w"}), port.NewPipe(&port.PipeConfig{Name: "to"})
	must(t, seg.Add(to, nil))
	must(t, seg.Add(w, &Member{Guard: &policy.GuardConfig{}}))
	m := &postman{t: t, to: to}
	must(t, w.Send(greeting(1, 0)))
	fake.Until(t, "a MAC is dropped", func() bool { return g.Stats().MAC == 1 })
	must(t, g.Update(&policy.GuardConfig{MACs: []frame.MAC{frame.MAC(greeting(2, 0)[6:])}}))
	m.n = 1
	m.passes(w, "the guard's MAC")
	check.Equal(t, "the guard of the member", n.Guards()[10]["w"].Stats(), policy.GuardStats{})
	check.True(t, n.PortFilters()["w"].Guard == g, "filters %v", n.PortFilters())
	must(t, n.SetPortFilters(nil))
	m.passes(w, "no guard any more")
}
