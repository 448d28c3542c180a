package bfd

import (
	"net"
	"time"
)

// A Session describes a session.
type Session struct {
	Peer   Peer
	Config SessionConfig // with its defaults
	Status Status

	State, RemoteState                 State
	Diag, RemoteDiag                   Diag
	Discriminator, RemoteDiscriminator uint32    // the remote one is 0 while nothing is heard
	Since                              time.Time // of the last change of State

	Interval  time.Duration // between packets sent, as agreed, without jitter
	Detection time.Duration // without a packet for that long the path is dead; 0 while nothing is heard
	Stats     SessionStats
	SendError error // of the Path for the last packet; nil if it was sent, or is being sent
}

// SessionStats counts the packets of a session.
type SessionStats struct {
	Sent      uint64 `json:"sent"`
	Failed    uint64 `json:"failed"`   // not sent: the Path returned an error
	Received  uint64 `json:"received"` // without those discarded
	Discarded Counts `json:"discarded"`
}

// Stats counts the packets of a Speaker, those of removed sessions too.
type Stats struct {
	Sessions  int    `json:"sessions"`
	Sent      uint64 `json:"sent"`
	Failed    uint64 `json:"failed"`    // not sent: the Path returned an error
	Received  uint64 `json:"received"`  // for sessions
	Discarded Counts `json:"discarded"` // without or for sessions
}

// Stats returns the counters.
func (s *Speaker) Stats() Stats {
	s.mu.RLock()
	st := Stats{Sessions: len(s.byPeer)}
	s.mu.RUnlock()
	st.Sent, st.Failed, st.Received = s.sent.Load(), s.failed.Load(), s.received.Load()
	for r := range st.Discarded {
		st.Discarded[r] = s.discarded[r].Load()
	}
	return st
}

// Session returns what is known of a session.
func (s *Speaker) Session(p Peer) (Session, error) {
	s.mu.RLock()
	x, err := s.find(p)
	s.mu.RUnlock()
	if err != nil {
		return Session{}, err
	}
	return x.describe(), nil
}

// Sessions returns all sessions, in no order.
func (s *Speaker) Sessions() ([]Session, error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return nil, net.ErrClosed
	}
	all := make([]*session, 0, len(s.byPeer))
	for _, x := range s.byPeer {
		all = append(all, x)
	}
	s.mu.RUnlock()
	list := make([]Session, len(all))
	for i, x := range all {
		list[i] = x.describe()
	}
	return list, nil
}

func (x *session) describe() Session {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := Session{
		Peer: x.peer, Config: x.cfg, Status: x.status,
		State: x.state, RemoteState: x.last.State, Diag: x.diag, RemoteDiag: x.last.Diag,
		Discriminator: x.my, RemoteDiscriminator: x.last.My, Since: x.speaker.start.Add(x.changed), Interval: x.txInterval(),
		Stats: SessionStats{x.sent, x.failed, x.received, x.discarded}, SendError: x.sendErr,
	}
	if x.heard {
		d.Detection = x.detection()
	}
	return d
}
