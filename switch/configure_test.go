package vswitch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// injects has n frames of a place injected, and returns how many were taken.
func (v *VSI) injects(from frame.Dest, n int) (took int) {
	f := frame.Make(eth(mac(1), mac(2), 0x800))
	f.From = from
	for range n {
		if v.sw.Inject(v, &f) {
			took++
		}
	}
	return took
}

// Another bound of learned MACs holds from the next one on; what is known stays.
func TestConfigureMaxMACs(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, &VSIConfig{Refuse: true}))(t)
	at := check.Must(v.Attach(newStub("p"), 0))(t)
	learn := func(n byte) fdb.Outcome { return v.FDB().Learn(mac(n), at.Dest(0), 0) }
	learn(1)
	learn(2)
	for _, c := range []struct {
		limit int
		want  fdb.Outcome
	}{{2, fdb.Full}, {3, fdb.New}, {1, fdb.Full}, {0, fdb.New}} {
		check.OK(t, s.Configure(Config{MaxMACs: c.limit}))
		check.Equal(t, fmt.Sprintf("limit %d", c.limit), learn(byte(10+c.limit)), c.want)
	}
	check.Equal(t, "MACs", v.FDB().Len(), 4)
}

// How much may be queued can be changed while something is: that is sent all the same.
func TestConfigureInjected(t *testing.T) {
	s := check.Must(New(&Config{Injected: 8}))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	a, b := frame.NewDest(1, 0), frame.NewDest(2, 0)
	want := func(what string, from frame.Dest, n int) {
		t.Helper()
		check.Equal(t, what, v.injects(from, 2*DefaultInjected), n)
	}
	want("one alone", a, 8)
	check.OK(t, s.Configure(Config{Injected: 3}))
	want("lowered", a, 0)
	want("lowered, another", b, 0)
	batch := frame.NewBatch(nil)
	for n := 0; n < 8; n += len(batch.Frames) {
		check.OK(t, s.own.readers[0].Read(batch))
	}
	want("lowered and empty", a, 3)
	check.OK(t, s.Configure(Config{Injected: 20}))
	want("raised", a, 17)
	check.OK(t, s.Configure(Config{}))
	want("the default", a, DefaultInjected-20)
}

// A queue of events has the size that was set when it was asked for.
func TestConfigureEvents(t *testing.T) {
	s := check.Must(New(&Config{Events: 4}))(t)
	defer s.Close()
	var es []*Events
	for _, n := range []int{0, 16, 8} {
		if n > 0 {
			check.OK(t, s.Configure(Config{Events: n}))
		}
		e := s.Events()
		defer e.Close()
		es = append(es, e)
	}
	for i := range byte(12) {
		s.Notify(frame.Event{Kind: frame.EventMACLearned, MAC: mac(i)})
	}
	for i, want := range []frame.Event{
		{Kind: frame.EventOverflow}, {Kind: frame.EventMACLearned, MAC: mac(0)}, {Kind: frame.EventOverflow},
	} {
		if e := check.Must(es[i].Next(context.Background()))(t); bare(e) != want {
			t.Errorf("reader %d: %+v, want %+v", i, e, want)
		}
	}
}

// Senders of what is too long hear of it as often as was set last.
func TestConfigureTooBig(t *testing.T) {
	inLab(t, func(l *lab) {
		a, tun := newStub("a"), &stubTunnel{stub: newStub("t")}
		a.mtu, tun.mtu = 9014, 1464
		check.Must(l.v.Attach(a, 0))(t)
		b := check.Must(l.v.Attach(tun, 1))(t)
		check.OK(t, l.v.FDB().Set(mac(2), b.Dest(0), 0))
		for n, c := range []struct {
			cfg  TooBigConfig
			want int
		}{
			{TooBigConfig{PerSender: 1}, 1}, {TooBigConfig{PerSender: 15}, 15}, {TooBigConfig{Total: 8}, 4}, {TooBigConfig{}, 10},
		} {
			check.OK(t, l.s.Configure(Config{TooBig: c.cfg}))
			l.s.tick.Add(5) // a second of their own
			for range 20 {
				a.send(packet(mac(2), mac(1), 5000))
			}
			if got := len(a.sent()); got != c.want || l.s.Config().TooBig != c.cfg {
				t.Errorf("%d: %+v: %d answers, want %d", n, c.cfg, got, c.want)
			}
		}
	})
}

func TestConfigOfSwitch(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	s := check.Must(New(&Config{Log: log, Events: 7}))(t)
	if c := s.Config(); c != (Config{Log: log, Events: 7}) {
		t.Errorf("made: %+v", c)
	}
	set := Config{MaxMACs: 1, Injected: 2, Events: 3, TooBig: TooBigConfig{4, 5}}
	check.OK(t, s.Configure(set))
	if set.Log = log; s.Config() != set || s.log != log {
		t.Errorf("%+v, want %+v", s.Config(), set)
	}
	for field, bad := range map[string]Config{
		"MaxMACs: -1": {MaxMACs: -1}, "Injected: -1": {Injected: -1}, "Injected: 16777217": {Injected: maxQueue + 1}, "Events: 1:": {Events: 1},
		"Events: 16777217":     {Events: maxQueue + 1},
		"TooBig.PerSender: -1": {TooBig: TooBigConfig{PerSender: -1}}, "TooBig.PerSender: 1000000001": {TooBig: TooBigConfig{PerSender: icmperr.MaxRate + 1}},
		"TooBig.Total: -1": {TooBig: TooBigConfig{Total: -1}}, "TooBig.Total: 1000000001": {TooBig: TooBigConfig{Total: icmperr.MaxRate + 1}},
	} {
		if err := s.Configure(bad); err == nil || !strings.HasPrefix(err.Error(), "vswitch: Config."+field) || s.Config() != set {
			t.Errorf("%s: %v", field, err)
		}
		check.True(t, check.Err(New(&bad)) != nil, "%s: made", field)
	}
	s.Close()
	if err := s.Configure(Config{}); !errors.Is(err, net.ErrClosed) || s.Config() != set {
		t.Errorf("closed: %v, %+v", err, s.Config())
	}
}

// Workers, readers of events and who sets need not know of each other.
func TestConfigureSwitchUnderTraffic(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	v := check.Must(s.VSI(1, nil))(t)
	var wg sync.WaitGroup
	for k := range uint16(2) {
		wg.Go(func() {
			batch := frame.NewBatch(nil)
			for range 200 {
				e := s.Events()
				for v.injects(frame.NewDest(1+k, 0), 5) > 0 {
				}
				s.Notify(frame.Event{Kind: frame.EventMACLearned})
				f := frame.Make(packet(mac(2), mac(1), 3000))
				f.From = frame.NewDest(1+k, 0)
				s.TooBig().Process(&f, frame.At{MTU: 1464})
				e.Close()
				if k == 0 && s.inject.Len() > 0 {
					check.OK(t, s.own.readers[0].Read(batch))
				}
			}
		})
	}
	for n := range 300 {
		k := 2 + n%20
		check.OK(t, s.Configure(Config{MaxMACs: k, Injected: k, Events: k, TooBig: TooBigConfig{k, k}}))
		if c := s.Config(); c.Injected != c.Events {
			t.Errorf("torn: %+v", c)
		}
	}
	wg.Wait()
}
