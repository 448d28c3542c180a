package discovery

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
)

// Why datagrams are refused, as [Status] counts them.
const (
	Malformed = "malformed" // the format is broken
	BadKey    = "key"       // there is no such key, or the HMAC is wrong
	BadTime   = "time"      // replayed, overtaken, or the clocks differ too much
	Crowded   = "senders"   // there are too many
	Foreign   = "network"   // of another network ID
	Stranger  = "stranger"  // it is neither of a neighbour nor of a server of ours, or it broke a rule
	NoRoom    = "no room"   // for another client or advertisement
	Unsent    = "not sent"  // the system refused it
)

// counts are of datagrams.
type counts struct {
	in, out           uint64
	bytesIn, bytesOut uint64 // of payloads with seals
	refused           map[string]uint64
	rowErr            error
}

// send sends a message of our network.
func (s *Speaker) send(to netip.Addr, m any) { s.sendIn(s.cfg.Network, to, m) }

// sendIn sends a message of a network. One that the system refuses is lost, as any may be. One to ourselves, as a server's, does not
// need a loopback interface that is up.
func (s *Speaker) sendIn(network uint32, to netip.Addr, m any) {
	switch {
	case s.socket == nil:
		return
	case to == s.cfg.Local:
		s.own = append(s.own, own{network, m})
		s.loop.Wake()
		return
	}
	b := s.sealer.Seal(s.keys, s.key, s.cfg.Local, to, time.Now(), wire.Append(nil, network, m))
	s.counts.out++
	s.counts.bytesOut += uint64(len(b))
	if _, err := s.socket.WriteToUDPAddrPort(b, netip.AddrPortFrom(to, s.cfg.port())); err != nil {
		s.counts.refused[Unsent]++
	}
}

// An own is a message to ourselves.
type own struct {
	network uint32
	message any
}

// hearOwn does what the messages to ourselves say.
func (s *Speaker) hearOwn(now time.Duration) {
	list := s.own
	s.own = nil
	for _, x := range list {
		s.refuse(s.hear(now, s.cfg.Local, x.network, x.message))
	}
}

// reader receives until the socket is closed.
func (s *Speaker) reader(ctx context.Context, conn socket) error {
	b := make([]byte, wire.MaxSize+seal.Overhead+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			select { // of what was sent before, such as an ICMP error; or the interface has no address just now
			case <-ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		s.receive(from.Addr().Unmap(), b[:n])
	}
}

func (s *Speaker) receive(from netip.Addr, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.in++
	s.counts.bytesIn += uint64(len(b))
	s.refuse(s.take(s.now(), from, b))
}

// refuse counts what was refused, unless the reason is "".
func (s *Speaker) refuse(why string) {
	if why != "" {
		s.counts.refused[why]++
	}
}

// take takes a datagram, or returns why it is refused.
func (s *Speaker) take(now time.Duration, from netip.Addr, b []byte) string {
	payload, err := s.opener.Open(s.keys, from, s.cfg.Local, time.Now(), b)
	switch {
	case errors.Is(err, seal.ErrFormat):
		return Malformed
	case errors.Is(err, seal.ErrKey):
		return BadKey
	case errors.Is(err, seal.ErrTime):
		return BadTime
	case err != nil:
		return Crowded
	}
	network, m, err := wire.Parse(payload)
	if err != nil {
		return Malformed
	}
	why := s.hear(now, from, network, m)
	s.poll(now)
	if s.state.Changed() {
		s.loop.Wake()
	}
	return why
}

// hear does what a message says.
func (s *Speaker) hear(now time.Duration, from netip.Addr, network uint32, m any) string {
	switch m := m.(type) {
	case endp.Register:
		if s.server == nil {
			return Stranger
		}
		if !s.server.Register(now, network, from, m) {
			return NoRoom
		}
		return ""
	case endp.Probe:
		if s.server == nil {
			return Stranger
		}
		s.sendIn(network, from, s.server.Probe(now, network, m))
		return ""
	}
	if network != s.cfg.Network {
		return Foreign
	}
	ok := true
	switch m := m.(type) {
	case endp.Clients:
		var next []endp.Send
		next, ok = s.member.Receive(now, from, m)
		for _, x := range next {
			s.send(x.To, x.Message)
		}
	case hello.Hello:
		var answer []hello.Send
		if answer, ok = s.hello.Receive(now, from, m); !ok {
			s.member.Ask(now)
		}
		for _, x := range answer {
			s.send(x.To, x.Hello)
		}
	case state.Message:
		err := s.state.Receive(now, from, m)
		if errors.Is(err, state.ErrFull) {
			return NoRoom
		}
		ok = err == nil
	}
	if !ok {
		return Stranger
	}
	return ""
}
