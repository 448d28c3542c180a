package evpn

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A script is a speaker of AS 65000 whose every UPDATE is the test's. It hears nothing but the end of its session.
type script struct {
	t     *testing.T
	conn  net.Conn
	hop   net.IP // next hop of its routes
	ended atomic.Pointer[[]byte]
}

// newScript opens a session from a host whose address is from, which is its identifier too.
func newScript(t *testing.T, h *netns.Host, from, to string) *script {
	t.Helper()
	s := &script{t: t, hop: net.ParseIP(from).To4()}
	h.Until("a connection", func() bool {
		var err error
		h.Do(func() { s.conn, err = net.Dial("tcp", to+":179") })
		return err == nil
	})
	t.Cleanup(func() { s.conn.Close() })
	capabilities := []byte{1, 4, 0, 25, 0, 70, 65, 4, 0, 0, 0xfd, 0xe8}
	open := append([]byte{4, 0xfd, 0xe8, 0, 0}, s.hop...) // without a hold time
	s.say(1, append(append(open, byte(len(capabilities)+2), 2, byte(len(capabilities))), capabilities...))
	s.say(4, nil)
	go func() {
		for {
			head := make([]byte, 19)
			_, err := io.ReadFull(s.conn, head)
			body := make([]byte, max(19, int(binary.BigEndian.Uint16(head[16:])))-19)
			if _, berr := io.ReadFull(s.conn, body); err != nil || berr != nil || head[18] == 3 {
				s.ended.Store(&body)
				return
			}
		}
	}()
	return s
}

func (s *script) say(typ byte, body []byte) {
	s.t.Helper()
	b := append(bytes.Repeat([]byte{0xff}, 16), 0, 0, typ)
	binary.BigEndian.PutUint16(b[16:], uint16(19+len(body)))
	if _, err := s.conn.Write(append(b, body...)); err != nil {
		s.t.Fatal(err)
	}
}

// announce says routes, each with its type and length, in one UPDATE. withdraw takes them back.
func (s *script) announce(communities string, routes ...[]byte) {
	s.t.Helper()
	reach := append(append([]byte{0, 25, 70, 4}, s.hop...), 0)
	s.update(attribute(0x80, 14, append(reach, bytes.Join(routes, nil)...)), attribute(0x40, 1, []byte{0}), attribute(0x40, 2, nil),
		attribute(0x40, 5, []byte{0, 0, 0, 100}), attribute(0xc0, 16, []byte(communities)))
}

func (s *script) withdraw(routes ...[]byte) {
	s.t.Helper()
	s.update(attribute(0x80, 15, append([]byte{0, 25, 70}, bytes.Join(routes, nil)...)))
}

func (s *script) update(attributes ...[]byte) {
	s.t.Helper()
	all := bytes.Join(attributes, nil)
	s.say(2, append([]byte{0, 0, byte(len(all) >> 8), byte(len(all))}, all...))
}

// attribute returns a path attribute, of a length of two bytes.
func attribute(flags, typ byte, value []byte) []byte {
	return append([]byte{flags | 0x10, typ, byte(len(value) >> 8), byte(len(value))}, value...)
}
