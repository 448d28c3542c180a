package etcd_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

const networkJSON = `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`

var want = flannel.Request{Attrs: flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr("1.2.3.4"), VNI: 1}}}

func (l *lab) acquire(r *flannel.Registry) *flannel.Own {
	l.t.Helper()
	l.setNetwork(networkJSON)
	n := check.Must(r.Network(l.t.Context()))(l.t)
	own := check.Must(r.Acquire(l.t.Context(), n, want))(l.t)
	return own
}

// A write whose answer is lost is not mistaken for another's, and etcd keeps one lease in the end.
func TestAnswerLost(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	l := newLab(t, s)
	l.cfg.TTL, l.cfg.Timeout, l.cfg.KeepAlive = time.Minute, 500*time.Millisecond, time.Minute
	r := &flannel.Registry{KV: l.store()}
	own := l.acquire(r)
	before := own.Record.Revision
	l.proxy.Mute()
	err := r.Renew(t.Context(), own)
	if !errors.Is(err, context.DeadlineExceeded) || own.Record.Revision != before {
		t.Fatalf("%v, %+v", err, own.Record)
	}
	l.proxy.Heal()
	check.OK(t, r.Renew(t.Context(), own))
	if list, err := r.KV.List(t.Context()); err != nil || len(list) != 1 || !list[0].Ours || list[0].Revision != own.Record.Revision {
		t.Errorf("%+v, %v", list, err)
	}
	for range 10 {
		check.OK(t, r.Renew(t.Context(), own))
	}
	if got := strings.Count(s.Ctl(t, "lease", "list"), "\n"); got > 1+3 { // the heading, the key's, and those of the lost answer
		t.Errorf("%d leases in etcd after 10 renewals", got-1)
	}
}

// A partition without a word is noticed by the watch, after two times KeepAlive, and by calls after Timeout.
func TestSilence(t *testing.T) {
	l := newLab(t, etcdlab.Start(t, etcdlab.Options{}))
	l.cfg.Timeout, l.cfg.KeepAlive = time.Second, 500*time.Millisecond
	s := l.store()
	check.Must(s.List(t.Context()))(t)
	l.proxy.Silence()
	begun := time.Now()
	_, err := s.List(t.Context())
	if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	if want := "etcd: list: no answer from http://" + l.proxy.Addr; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	l.proxy.Heal()
	begun = time.Now()
	for {
		if _, err := s.List(t.Context()); err == nil {
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("not back")
		}
	}
}

// A watch that hears nothing ends, whatever the reason, and one where nothing happens goes on.
func TestWatchSilence(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	for name, stop := range map[string]func(l *lab){
		"silence": func(l *lab) { l.proxy.Silence() }, "cut": func(l *lab) { l.proxy.Cut() }, "mute": func(l *lab) { l.proxy.Mute() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, s)
			l.t = t
			l.cfg.KeepAlive, l.cfg.Timeout = 300*time.Millisecond, time.Second
			x := l.store()
			seen := make(chan flannel.Change, 10)
			ended := make(chan error, 1)
			go func() { ended <- x.Watch(t.Context(), func(c flannel.Change) { seen <- c }) }()
			<-seen
			select {
			case err := <-ended:
				t.Fatalf("ended while nothing happens: %v", err)
			case <-time.After(2 * time.Second):
			}
			l.put("10.3.1.0-24", []byte("x"), 0)
			if c := <-seen; len(c.Set) != 1 {
				t.Errorf("%+v", c)
			}
			stop(l)
			begun := time.Now()
			select {
			case err := <-ended:
				t.Logf("%v after %v", err, time.Since(begun).Round(10*time.Millisecond))
			case <-time.After(10 * time.Second):
				t.Error("the watch goes on")
			}
		})
	}
}

// A watch that etcd has not begun when it goes away ends, too.
func TestWatchNeverBegins(t *testing.T) {
	l := newLab(t, etcdlab.Start(t, etcdlab.Options{}))
	l.cfg.KeepAlive, l.cfg.Timeout = 300*time.Millisecond, time.Second
	x := l.store()
	begun := time.Now()
	err := x.Watch(t.Context(), func(c flannel.Change) { l.proxy.Cut() })
	if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// Without a leader a watch ends: what it says may be old.
func TestLostLeader(t *testing.T) {
	servers := etcdlab.Cluster(t, 3, etcdlab.Options{})
	l := newLab(t, servers[0])
	s := l.store()
	watching := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.Watch(t.Context(), func(c flannel.Change) {
			if c.Snapshot {
				close(watching)
			}
		})
	}()
	<-watching
	time.Sleep(100 * time.Millisecond) // until etcd has the watch, too
	servers[1].Stop()
	servers[2].Stop()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "no leader") {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the watch goes on")
	}
	if _, err := s.List(t.Context()); err == nil {
		t.Error("a list without a leader")
	}
}

// When etcd starts again, a store is back at once.
func TestRestart(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	l := newLab(t, s)
	l.cfg.TTL = time.Minute
	r := &flannel.Registry{KV: l.store()}
	own := l.acquire(r)
	s.Stop()
	time.Sleep(time.Second)
	if err := r.Renew(t.Context(), own); err == nil {
		t.Fatal("renewed without etcd")
	}
	s.Start()
	begun := time.Now()
	for ; ; time.Sleep(10 * time.Millisecond) {
		if err := r.Renew(t.Context(), own); err == nil {
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("not back")
		}
	}
	t.Logf("renewed %v after etcd answered again", time.Since(begun).Round(time.Millisecond))
}

func TestClose(t *testing.T) {
	l := newLab(t, etcdlab.Start(t, etcdlab.Options{}))
	s := l.store()
	ended := make(chan error, 1)
	watching := make(chan struct{})
	go func() { ended <- s.Watch(t.Context(), func(flannel.Change) { close(watching) }) }()
	<-watching
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Watch: %v", err)
	}
	if _, err := s.List(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("List: %v", err)
	}
}
