package bgp

import (
	"context"
	"errors"
	"net/netip"

	"github.com/vxswitch/vxswitch/evpn/internal/unnumbered"
)

// A location is where a peer is.
type location struct {
	addr   netip.Addr
	ctx    context.Context // done when the peer is no longer there; nil: it is nowhere
	cancel context.CancelCauseFunc
}

// lost is why a peer is no longer where it was.
type lost struct{ error }

func isLost(err error) bool { return errors.As(err, &lost{}) }

func (p *peer) location() location {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// newLink looks for the peer on its interface.
func (p *peer) newLink() *unnumbered.Link {
	return unnumbered.New(unnumbered.Config{Interface: p.Interface, In: p.b.conf.In, Found: p.found, Lost: p.lost, Session: func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.current != nil
	}})
}

// found takes the address of the peer on the interface.
func (p *peer) found(addr netip.Addr) {
	if p.Password != "" {
		p.b.expect(&Peer{Addr: addr, Password: p.Password}, false) // if it fails, the peer has to wait for us
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at.addr = addr
	p.at.ctx, p.at.cancel = context.WithCancelCause(p.ctx)
	close(p.change)
	p.change = make(chan struct{})
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// lost ends the session and all attempts at one: the peer is no longer where it was.
func (p *peer) lost(why error) {
	p.mu.Lock()
	at := p.at
	p.at = location{}
	p.mu.Unlock()
	if p.ctx.Err() == nil { // else sessions end for another reason
		at.cancel(lost{why})
	}
	if p.Password == "" {
		return
	}
	for _, other := range *p.b.peers.Load() {
		if other.location().addr.WithZone("") == at.addr.WithZone("") {
			return // another interface leads to a router with this address
		}
	}
	p.b.expect(&Peer{Addr: at.addr}, true)
}
