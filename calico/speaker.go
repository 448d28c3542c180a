package calico

import (
	"context"
	"errors"
	"reflect"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bgp"
)

// A speaker is a bgp.Speaker.
type speaker interface {
	Configure(*bgp.Config) error
	Run(context.Context) error
	Status() bgp.Status
	Routes() []bgp.Route
	BFD() []bfd.Session
}

// running is a speaker that runs.
type running struct {
	speaker
	cfg    *bgp.Config
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // then
}

func (p *Plane) startBGP(c *bgp.Config) (speaker, error) {
	return bgp.New(p.node, c)
}

// current returns the speaker that runs, nil if none does.
func (p *Plane) current() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// setBGP has the speaker do what a configuration says: it begins, changes, ends, or begins anew where it cannot change.
func (p *Plane) setBGP(c *bgp.Config) error {
	r := p.current()
	if r != nil {
		select {
		case <-r.done: // by itself, which is an error
			p.stopBGP()
			return errors.Join(errors.New("calico: BGP has ended"), r.err)
		default:
		}
	}
	switch {
	case c == nil:
		p.stopBGP()
		return nil
	case r == nil:
		return p.begin(c)
	}
	c.Log = p.log
	switch {
	case reflect.DeepEqual(r.cfg, c):
		return nil
	case !r.cfg.Restarts(c):
		if err := r.Configure(c); err != nil {
			return err
		}
		p.mu.Lock()
		r.cfg = c
		p.mu.Unlock()
		return nil
	}
	p.stopBGP()
	return p.begin(c)
}

func (p *Plane) begin(c *bgp.Config) error {
	c.Log = p.log
	s, err := p.start(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{speaker: s, cfg: c, cancel: cancel, done: make(chan struct{})}
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	go func() {
		r.err = s.Run(ctx)
		close(r.done)
		if ctx.Err() == nil {
			p.routes.Store(true)
			p.loop.Wake()
		}
	}()
	return nil
}

// stopBGP ends the sessions, and waits until they have.
func (p *Plane) stopBGP() {
	p.mu.Lock()
	r := p.run
	p.run = nil
	p.mu.Unlock()
	if r != nil {
		r.cancel()
		<-r.done
	}
}
