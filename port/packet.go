package port

import (
	"sync"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// PacketConfig configures a [Packet]. The zero value works.
type PacketConfig struct {
	// Queues is the number of receive queues, at most 256; 0 is 1. The kernel spreads
	// flows over them (PACKET_FANOUT). All of them must be read, or the flows of the others
	// are lost. More than one needs a kernel with PACKET_FANOUT_FLAG_IGNORE_OUTGOING.
	Queues int `json:"queues,omitzero"`

	// Namespace is the network namespace the interface is in, as in [DeviceConfig].
	Namespace string `json:"namespace,omitzero"`

	// Promiscuous has a network card hand over frames to any address while the port is open,
	// which it must if there are hosts behind the switch. A veth does anyway.
	Promiscuous bool `json:"promiscuous,omitzero"`

	// BusyPoll is as in [DeviceConfig].
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// NoOffload has single frames come in and go out, with complete checksums on the way out.
	// It changes nothing about what the kernel sends: a frame longer than the MTU, which
	// would have been cut by the network card, then comes in as [frame.TooBig], unless the
	// sender's offloads are off ("ethtool -K eth0 tso off gso off", and "gro off" at the
	// interface itself).
	NoOffload bool `json:"noOffload,omitzero"`

	// RecvBuffer is the size to ask for, in bytes, of the buffer of each receive queue, up to
	// 1 GiB; 0 means 4 MiB. Without CAP_NET_ADMIN net.core.rmem_max bounds it
	// ([Packet.Stats] tells what was granted).
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the size to ask for, in bytes, of the buffer for all that is sent, up to
	// 1 GiB; 0 means 4 MiB. Without CAP_NET_ADMIN net.core.wmem_max bounds it.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// Control, when not nil, is called for every socket, receiving and sending, before it is
	// bound and after the options above are set. The network is "packet", the address the
	// name of the interface.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`
}

// A Packet is a port whose far side is beyond a network interface that exists already: the
// other end of a veth, or what a network card is plugged into. It reads what the interface
// receives and sends on it what is written, past the network stack (packet(7)).
//
//	host A -- veth -- interface <-- Packet --> switch
//	                      |
//	              the stack of this host
//
// The stack of this host goes on receiving what the interface receives. If it is not to
// answer, the interface has no addresses, those that IPv6 makes included ("ip link set
// eth0 addrgenmode none"). What the stack sends on the interface is not read.
//
// The interface may be renamed, its MTU changed, and it may go down and come up; reading and
// writing go on. When it is deleted, or moved to another network namespace, the port is
// broken.
type Packet struct {
	dev *sys.PacketInterface
	egress
	queues []*packetQueue
	send   *sys.PacketSocket // of all Writers

	mu    sync.Mutex
	drops []dropCount // of the queues
}

// A dropCount extends the 32-bit counter of a socket to 64 bits, for whoever asks at least
// once in four billion drops.
type dropCount struct {
	last  uint32
	total uint64
}

// Name returns the name the interface had when the port was opened.
func (p *Packet) Name() string { return p.dev.Name }

// MTU returns the longest frame the interface takes: its MTU and 14 bytes of Ethernet
// header. An 802.1Q tag may come on top, as [frame.Out.Tag] does. It costs one load; a
// change on the interface is seen at once.
func (p *Packet) MTU(peer uint16) int { return int(p.dev.MTU.Load()) + ethLen }

// Readers returns the receive queues: what the interface receives, a flow always through the
// same queue. When the interface is deleted, each Read returns an error that names it; while
// it is down, Read waits.
//
// A VLAN tag that the kernel or the network card took out of the frame is in it again. A frame
// whose virtio header contradicts it has Drop set to [frame.BadHeader], as has a superframe
// of another kind than [frame.GSOType] knows.
func (p *Packet) Readers() []frame.Reader {
	readers := make([]frame.Reader, len(p.queues))
	for i, q := range p.queues {
		readers[i] = &q.reader
	}
	return readers
}

// Offloads returns all with offloads, UDP superframes since Linux 6.2, and without them VLAN tags only.
func (p *Packet) Offloads() frame.Offloads { return p.offloads() }

// Writer returns a new transmit side: what it writes leaves through the interface. It drops
// with [frame.PortFull] when the queue of the interface or the send buffer is full, with
// [frame.PortDown] while the interface is down, with [frame.TooBig] what is longer than its
// MTU, and with [frame.BadKind] what is not Ethernet.
//
// With offloads, frames of one flow that follow each other in a Write are written as one
// superframe, and superframes as they are; if the network card cannot cut them, the kernel does.
func (p *Packet) Writer(w int) frame.Writer {
	x := &deviceWriter{of: p, conn: p.send.Conn, egress: &p.egress}
	x.emit = x.send
	return x
}

// PacketStats is a snapshot of the counters of a [Packet] since it was opened.
type PacketStats struct {
	RxOverflow uint64 // frames that were dropped before a Reader saw them: its receive buffer was full

	// The smallest buffers granted, as the kernel counts: twice what was asked for, since its
	// own bookkeeping is in it. 0 after Close.
	RecvBuffer, SendBuffer int
}

// Stats returns the counters.
func (p *Packet) Stats() (st PacketStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.SendBuffer = p.send.Buffer(false)
	for i, q := range p.queues {
		d := &p.drops[i]
		if v, ok := q.Drops(); ok {
			d.total += uint64(v - d.last)
			d.last = v
		}
		st.RxOverflow += d.total
		if n := q.Buffer(true); i == 0 || n < st.RecvBuffer {
			st.RecvBuffer = n
		}
	}
	return st
}

// Pause makes Read return [frame.ErrPaused] until Resume. Frames that arrive in between wait
// in the receive buffer.
func (p *Packet) Pause() { p.dev.Pause(true) }

// Resume ends Pause.
func (p *Packet) Resume() { p.dev.Pause(false) }

// Close makes every Read return [net.ErrClosed], one that waits included. The interface is
// left as it is.
func (p *Packet) Close() error {
	if err, _ := p.dev.Close(); err != nil {
		return p.dev.Wrap(err)
	}
	return nil
}

// refresh has nothing to do: the MTU follows the interface.
func (p *Packet) refresh() {}

// over returns what the port says when a socket says err.
func (p *Packet) over(err error) error { return p.dev.Ended(err) }
