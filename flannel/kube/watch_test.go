package kube

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/flannel"
)

// A node that was removed and made anew is another one, although it says the same.
func another(l *lab) {
	l.node("a", "10.244.7.0/24")
	s := l.store("a")
	own := l.acquire(s, network(l, vxlan), request("192.0.2.1"))
	f := l.follow(s)
	f.want("the lease", "a")
	says := l.annotations("a")
	l.remove("a")
	f.want("nothing")
	l.node("a", "10.244.7.0/24")
	var pairs []string
	for k, v := range says {
		pairs = append(pairs, k, v)
	}
	l.annotate("a", pairs...)
	f.until("the other one", func() bool {
		r, ok := f.records[l.name("a")]
		return ok && !r.Ours && r.Node.PublicIP == "192.0.2.1"
	})
	l.lost(s.Renew(l.Context(), own))
}

func follow(l *lab) {
	n := network(l, vxlan)
	l.node("a", "10.244.7.0/24")
	l.node("b", "10.244.8.0/24")
	l.node("windows", "10.244.9.0/24") // without flannel
	l.acquire(l.store("b"), n, request("192.0.2.2"))
	s := l.store("a")
	f := l.follow(s)
	f.want("what is there", "b")
	own := l.acquire(s, n, request("192.0.2.1"))
	f.want("a lease more", "a", "b")
	f.until("whose they are", func() bool { return f.records[l.name("a")].Ours && !f.records[l.name("b")].Ours })
	f.mu.Lock()
	a, b, before := f.records[l.name("a")], f.records[l.name("b")], len(f.changes)
	f.mu.Unlock()
	if lease, err := a.Lease(); err != nil || lease != own.Lease || a.Revision < b.Revision || a.Created == 0 {
		l.Errorf("%+v, %v", a, err)
	}
	for range 10 {
		l.beat("a")
		l.beat("b")
		l.annotate("windows", "other", fmt.Sprint(labs.Add(1)))
	}
	l.annotate("b", "public-ip", "192.0.2.22")
	f.until("a change", func() bool { return f.records[l.name("b")].Node.PublicIP == "192.0.2.22" })
	f.mu.Lock()
	if got := len(f.changes); got != before+1 {
		l.Errorf("%d changes for one: %+v", got-before, f.changes[before:])
	}
	f.mu.Unlock()
	l.annotate("b", "kube-subnet-manager", "false")
	f.want("without one that is no longer managed", "a")
	l.annotate("b", "kube-subnet-manager", "true")
	f.want("with it", "a", "b")
	l.node("c")
	l.annotate("c", "kube-subnet-manager", "true")
	f.want("one without a pod CIDR", "a", "b", "c")
	f.mu.Lock()
	c := f.records[l.name("c")]
	f.mu.Unlock()
	var r *flannel.Refusal
	if _, err := c.Lease(); !errors.As(err, &r) || r.Reason != flannel.NoSubnet || r.Key != l.name("c") {
		l.Errorf("%v", err)
	}
	l.remove("b")
	f.want("without a node", "a", "c")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.snapshots != 1 || len(f.errs) != 0 {
		l.Errorf("%d snapshots, errors %v", f.snapshots, f.errs)
	}
}
