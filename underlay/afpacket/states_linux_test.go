package afpacket

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
)

func TestReaderStates(t *testing.T) {
	var from *underlay.UDP
	open := func(queues int) func(v *underlaytest.Veth, k int) *underlaytest.Subject {
		return func(v *underlaytest.Veth, k int) *underlaytest.Subject { return subject(&veth{v}, from, k, queues) }
	}
	underlaytest.States(t, func(v *underlaytest.Veth) {
		from = (&veth{v}).udp(v.B, 2, &underlay.UDPConfig{Checksum: underlay.ChecksumOn})
	}, map[string]underlaytest.Kind{"one queue": {Gone: true, Open: open(1)}, "two queues": {Gone: true, Open: open(2)}})
}

// subject opens an underlay with a number of queues. A flow goes to one of them: all Readers are in
// the state, and the one that the flow goes to is watched.
func subject(v *veth, from *underlay.UDP, k, queues int) *underlaytest.Subject {
	n := 10*queues + k
	p := v.packetAt(v.A, n, &Config{Queues: queues, SrcPorts: underlay.PortRange{Lo: 1000, Hi: 1000}})
	x := &underlaytest.Subject{U: p}
	to := v.End(n)
	fake.Until(v.T, "the next hop answers", func() bool {
		send(v.T, from, frame.Datagram{Parts: [][]byte{{1}}, To: []frame.Endpoint{to}, DF: true})
		for i, q := range p.queues {
			_ = q.sock.Conn.Control(func(fd uintptr) {
				fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				if n, _ := unix.Poll(fds, 0); n > 0 {
					x.In, x.R = &q.Inbox, p.Readers()[i]
					call := q.call
					q.call = func(fd uintptr) bool { return x.Fails() || call(fd) }
				}
			})
		}
		return x.R != nil
	})
	send(v.T, from, frame.Datagram{Parts: [][]byte{[]byte("mark")}, To: []frame.Endpoint{to}, DF: true})
	for batch := frame.NewBatch(nil); len(batch.Frames) == 0 || string(batch.Frames[len(batch.Frames)-1].Bytes()) != "mark"; {
		must(v.T, x.R.Read(batch))
	}
	run, _ := runOf(64*8, 8, 0, 0, to)
	run.TTL = 64
	x.Feed = func() { send(v.T, from, run, run) }
	return x
}
