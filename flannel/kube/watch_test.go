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
	f := l.follow(s)
	f.want("nothing yet")
	own := l.acquire(s, network(l, vxlan), request("192.0.2.1"))
	f.want("the lease", "a") // so the watch has begun: the fake does not tell it what was removed before
	says := l.annotations("a")
	l.remove("a")
	f.want("nothing")
	l.node("a", "10.244.7.0/24")
	var pairs []string
	for k, v := range says {
		pairs = append(pairs, k, v)
	}
	l.annotate("a", pairs...)
	f.Until("the other one", func() bool {
		r, ok := f.Records[l.name("a")]
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
	f.Until("whose they are", func() bool { return f.Records[l.name("a")].Ours && !f.Records[l.name("b")].Ours })
	f.Mu.Lock()
	a, b, before := f.Records[l.name("a")], f.Records[l.name("b")], len(f.Changes)
	f.Mu.Unlock()
	if lease, err := a.Lease(); err != nil || lease != own.Lease || a.Revision < b.Revision || a.Created == 0 {
		l.Errorf("%+v, %v", a, err)
	}
	for range 10 {
		l.beat("a")
		l.beat("b")
		l.annotate("windows", "other", fmt.Sprint(labs.Add(1)))
	}
	l.annotate("b", "public-ip", "192.0.2.22")
	f.Until("a change", func() bool { return f.Records[l.name("b")].Node.PublicIP == "192.0.2.22" })
	f.Mu.Lock()
	if got := len(f.Changes); got != before+1 {
		l.Errorf("%d changes for one: %+v", got-before, f.Changes[before:])
	}
	f.Mu.Unlock()
	l.annotate("b", "kube-subnet-manager", "false")
	f.want("without one that is no longer managed", "a")
	l.annotate("b", "kube-subnet-manager", "true")
	f.want("with it", "a", "b")
	l.node("c")
	l.annotate("c", "kube-subnet-manager", "true")
	f.want("one without a pod CIDR", "a", "b", "c")
	f.Mu.Lock()
	c := f.Records[l.name("c")]
	f.Mu.Unlock()
	var r *flannel.Refusal
	if _, err := c.Lease(); !errors.As(err, &r) || r.Reason != flannel.NoSubnet || r.Key != l.name("c") {
		l.Errorf("%v", err)
	}
	l.remove("b")
	f.want("without a node", "a", "c")
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Snapshots != 1 || len(f.Errs) != 0 {
		l.Errorf("%d snapshots, errors %v", f.Snapshots, f.Errs)
	}
}
