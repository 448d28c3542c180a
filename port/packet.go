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
	// Queues is the number of receive queues, at most 256; 0 is 1. The kernel spreads flows over them
	// (PACKET_FANOUT): flows in a queue that is not read are lost. More than one needs a kernel with
	// PACKET_FANOUT_FLAG_IGNORE_OUTGOING.
	Queues int `json:"queues,omitzero"`

	// Namespace is the network namespace the interface is in, as in [DeviceConfig].
	Namespace string `json:"namespace,omitzero"`

	// Promiscuous makes a network card receive frames to any address while the port is open. Set it if
	// hosts are behind the switch. A veth receives all frames anyway.
	Promiscuous bool `json:"promiscuous,omitzero"`

	// BusyPoll is as in [DeviceConfig].
	BusyPoll time.Duration `json:"busyPoll,omitzero"`

	// NoOffload makes the port read single frames, and write single frames with complete checksums. The
	// kernel still sends superframes to a veth: they are dropped with [frame.TooBig]. To avoid that, switch
	// them off at the sender ("ethtool -K eth0 tso off gso off") and at the interface itself ("gro off").
	NoOffload bool `json:"noOffload,omitzero"`

	// RecvBuffer is the buffer size to request for each receive queue, in bytes, up to 1 GiB; 0 is 4 MiB.
	// Without CAP_NET_ADMIN net.core.rmem_max limits it. ([Packet.Stats] returns the size granted.)
	RecvBuffer int `json:"recvBuffer,omitzero"`

	// SendBuffer is the buffer size to request for sending, in bytes, up to 1 GiB; 0 is 4 MiB. Without
	// CAP_NET_ADMIN net.core.wmem_max limits it.
	SendBuffer int `json:"sendBuffer,omitzero"`

	// Leave is what the port leaves to underlays from the start: see [Packet.Leave].
	Leave []Address `json:"-"`

	// Control, if not nil, is called for every socket after the options above are set and before it is
	// bound. The network is "packet", the address the name of the interface.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`
}

// A Packet is a port on an existing network interface: a veth or a network card. It reads the frames that
// the interface receives, and sends frames on it, past the network stack (packet(7)).
//
//	host A -- veth -- interface <-- Packet --> switch
//	                      |
//	              the stack of this host
//
// The stack of this host receives the same frames. So that it does not answer, give the interface no
// addresses, and keep IPv6 from making one ("ip link set eth0 addrgenmode none"). The port does not read
// what the stack sends.
//
// The interface may be renamed, get another MTU, go down and come up; reading and writing go on. When it is
// deleted, or moved to another network namespace, Read and Write of the port fail.
type Packet struct {
	dev *sys.PacketInterface
	egress
	queues []*packetQueue
	send   *sys.PacketSocket // of all Writers

	mu    sync.Mutex
	drops []dropCount // of the queues
}

// A dropCount extends the 32-bit drop counter of a socket to 64 bits, if it is read at least once in four
// billion drops.
type dropCount struct {
	last  uint32
	total uint64
}

// Name returns the name the interface had when the port was opened.
func (p *Packet) Name() string { return p.dev.Name }

// MTU returns the length of the longest frame the interface takes: its MTU and an Ethernet header, 14
// bytes. An 802.1Q tag, such as [frame.Out.Tag], does not count. It costs one load; the port follows
// changes at once.
func (p *Packet) MTU(peer uint16) int { return int(p.dev.MTU.Load()) + ethLen }

// Readers returns the receive queues. A flow stays in one queue. While the interface is down, Read waits;
// after the interface is deleted, each Read returns an error that names it.
//
// A VLAN tag that the kernel or the network card has removed from a frame is put back. Drop of a frame that
// contradicts its virtio header is [frame.BadHeader], as is that of a superframe that [frame.GSOType] has no
// value for.
func (p *Packet) Readers() []frame.Reader {
	readers := make([]frame.Reader, len(p.queues))
	for i, q := range p.queues {
		readers[i] = &q.reader
	}
	return readers
}

// Offloads returns all offloads, UDP superframes since Linux 6.2; with NoOffload, VLAN tags only.
func (p *Packet) Offloads() frame.Offloads { return p.offloads() }

// Writer returns a Writer. It drops frames with [frame.PortFull] if the queue of the interface or the send
// buffer is full, with [frame.PortDown] while the interface is down, with [frame.TooBig] if they are longer
// than the MTU, and with [frame.BadKind] if they are not Ethernet.
//
// With offloads, consecutive frames of one flow in a Write are written as one superframe, and superframes
// as they are; if the network card cannot cut them, the kernel does.
func (p *Packet) Writer(w int) frame.Writer {
	x := &deviceWriter{of: p, conn: p.send.Conn, egress: &p.egress}
	x.emit = x.send
	return x
}

// PacketStats is a snapshot of the counters of a [Packet] since it was opened.
type PacketStats struct {
	RxOverflow uint64 `json:"rx_overflow"` // frames lost because a receive buffer was full

	// The smallest buffers granted, as the kernel counts: twice the size requested, which includes its own
	// bookkeeping. 0 after Close.
	RecvBuffer int `json:"recv_buffer"`
	SendBuffer int `json:"send_buffer"`
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

// Pause makes Read return [frame.ErrPaused] until Resume. Meanwhile frames wait in the receive buffer.
func (p *Packet) Pause() { p.dev.Pause(true) }

// Resume ends Pause.
func (p *Packet) Resume() { p.dev.Pause(false) }

// Close makes every Read return [net.ErrClosed], one that waits included. The interface stays as it is.
func (p *Packet) Close() error {
	if err, _ := p.dev.Close(); err != nil {
		return p.dev.Wrap(err)
	}
	return nil
}

// refresh does nothing: the MTU follows the interface.
func (p *Packet) refresh() {}

// over returns the error of the port for an error of a socket.
func (p *Packet) over(err error) error { return p.dev.Ended(err) }
