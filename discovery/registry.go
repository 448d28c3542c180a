package discovery

import (
	"context"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
)

// A Registry lists the VTEPs of a network, beside servers or in their place. Package etcd has one.
type Registry interface {
	// Join registers a VTEP and calls list with all those of the network, and again after each change, until ctx is done, when the
	// VTEP is no longer listed. Any other end is an error: the Speaker calls Join again after a pause, and keeps the last list.
	Join(ctx context.Context, network uint32, own VTEP, list func([]VTEP)) error
}

// A VTEP is one of a Registry.
type VTEP struct {
	Addr netip.Addr
	Name string // up to 32 bytes of printable UTF-8
}

// RegistryStatus is what is known of a Registry.
type RegistryStatus struct {
	Up    bool   // its list is as it is now
	VTEPs int    // in the list, with us
	Error string // why it is not up
}

// registry is what a Speaker knows of its Registry.
type registry struct {
	Registry // nil = none
	list     map[netip.Addr]string
	up       bool
	err      error
}

// retry is how long after an error the Registry is asked again.
const retry = 2 * time.Second

// follow keeps the node in the Registry until ctx is done.
func (s *Speaker) follow(ctx context.Context) {
	own := VTEP{Addr: s.cfg.Local, Name: s.cfg.Name}
	for ctx.Err() == nil {
		err := s.registry.Join(ctx, s.cfg.Network, own, s.listed)
		if ctx.Err() != nil {
			return
		}
		s.do(func(time.Duration) {
			if s.registry.up || s.registry.err == nil {
				s.log.Warn("the registry is away: its last list holds", "error", err)
			}
			s.registry.up, s.registry.err = false, err
		})
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// listed takes a list of the Registry. What is in it that is no VTEP, or is too many, is left out.
func (s *Speaker) listed(all []VTEP) {
	list := map[netip.Addr]string{}
	for _, v := range all {
		if wire.IsVTEP(v.Addr) && wire.IsName(v.Name) && len(list) < endp.MaxClients {
			list[v.Addr] = v.Name
		}
	}
	s.do(func(now time.Duration) {
		if !s.registry.up {
			s.log.Info("the registry is followed", "vteps", len(list))
		}
		s.registry.list, s.registry.up, s.registry.err = list, true, nil
		s.meet(now)
	})
}

func (r *registry) status() *RegistryStatus {
	if r.Registry == nil {
		return nil
	}
	st := &RegistryStatus{Up: r.up, VTEPs: len(r.list)}
	if r.err != nil {
		st.Error = r.err.Error()
	}
	return st
}
