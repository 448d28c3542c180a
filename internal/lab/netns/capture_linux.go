package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Packet is one packet that passed a device.
type Packet struct {
	Time       time.Time
	Data       []byte // from the destination MAC on, VLAN tag included
	Out        bool   // the host sent it, as opposed to received it
	Unfinished bool   // its transport checksum was left to the network card (CHECKSUM_PARTIAL)
}

// A Capture collects the packets that pass a device in both directions.
type Capture struct {
	h    *Host
	dev  string
	file *os.File
	raw  rawConn
	done chan struct{} // closed when the reader has ended

	reading  sync.Mutex // around buf and oob, and so that packets stay in order
	buf, oob []byte

	mu   sync.Mutex
	seen []Packet
	more chan struct{} // closed at the next packet
	over bool
}

type rawConn interface {
	Control(f func(fd uintptr)) error
	Read(f func(fd uintptr) bool) error
}

// captureBuffer is what may wait for the reader, in bytes; more fails the test.
const captureBuffer = 64 << 20

// Capture starts to capture on a device of the host. What passes the device after it
// has returned is in the capture, and nothing from before.
//
// The filter is one of tcpdump, "" for none. It is matched against what the kernel
// sees: a VLAN tag that was taken out of a received packet is not there. In the
// Packets it is, where it was on the wire.
//
// Packets are seen where the kernel's taps are: on a veth, those above the MTU that
// still are to be segmented, and transport checksums that are still to be completed,
// unless TxOff has turned that off.
func (h *Host) Capture(dev, filter string) *Capture {
	h.t.Helper()
	c := &Capture{h: h, dev: dev, done: make(chan struct{}), more: make(chan struct{}),
		buf: make([]byte, 1<<18), oob: make([]byte, 256)}
	prog, err := compile(h.t, filter)
	if err != nil {
		h.t.Fatalf("lab: host %s: capture on %s: %v", h.Name, dev, err)
	}
	h.Do(func() { c.file, err = openCapture(dev, prog) })
	if err != nil {
		h.t.Fatalf("lab: host %s: capture on %s: %v", h.Name, dev, err)
	}
	if c.raw, err = c.file.SyscallConn(); err != nil {
		c.file.Close()
		h.t.Fatalf("lab: host %s: capture on %s: %v", h.Name, dev, err)
	}
	go c.run()
	h.t.Cleanup(c.end)
	return c
}

// compile turns a filter of tcpdump into a program of the kernel.
func compile(t testing.TB, filter string) ([]unix.SockFilter, error) {
	if filter == "" {
		return nil, nil
	}
	Tool(t, "tcpdump")
	out, err := exec.Command("tcpdump", "-ddd", "-s", "262144", "-y", "EN10MB", filter).Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("filter %q: %w", filter, err)
	}
	_, rest, _ := strings.Cut(string(out), "\n") // the number of lines
	var prog []unix.SockFilter
	for line := range strings.Lines(rest) {
		var f unix.SockFilter
		if _, err := fmt.Sscan(line, &f.Code, &f.Jt, &f.Jf, &f.K); err != nil {
			return nil, fmt.Errorf("filter %q: line %q: %w", filter, line, err)
		}
		prog = append(prog, f)
	}
	return prog, nil
}

func openCapture(dev string, prog []unix.SockFilter) (_ *os.File, err error) {
	ifi, err := net.InterfaceByName(dev)
	if err != nil {
		return nil, err
	}
	// Protocol 0 receives nothing: that begins with bind, when all is set up.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if len(prog) > 0 {
		p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &p); err != nil {
			return nil, fmt.Errorf("SO_ATTACH_FILTER: %w", err)
		}
	}
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return nil, fmt.Errorf("setsockopt %d/%d: %w", o.level, o.name, err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifi.Index}); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	return os.NewFile(uintptr(fd), "capture on "+dev), nil
}

// stamps opens a socket that wants receive times, for as long as the process lives. The kernel
// begins to stamp packets a moment after the first such socket is there (net_enable_timestamp in
// net/core/dev.c of Linux 6.18), and stamps earlier ones as they are read: a capture on a busy
// machine had them in another order.
var stamps = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
})

// htons returns v in network byte order.
func htons(v uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)) }

// run reads until the capture ends.
func (c *Capture) run() {
	defer close(c.done)
	c.raw.Read(func(fd uintptr) bool {
		c.drain(int(fd))
		return false // wait for more
	})
}

// drain reads what is there.
func (c *Capture) drain(fd int) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		n, on, _, from, err := unix.Recvmsg(fd, c.buf, c.oob, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ENETDOWN: // told once: the device went down, and may come back
			continue
		case err != nil:
			return
		}
		p := Packet{Data: append([]byte(nil), c.buf[:n]...)}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok {
			p.Out = ll.Pkttype == unix.PACKET_OUTGOING
		}
		p.control(c.oob[:on])
		c.mu.Lock()
		c.seen = append(c.seen, p)
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
	}
}

// control reads what the kernel says beside the packet.
func (p *Packet) control(oob []byte) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for _, m := range msgs {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})):
			p.Time = time.Unix((*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Unix())
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
			p.Unfinished = aux.Status&unix.TP_STATUS_CSUMNOTREADY != 0
			if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 && len(p.Data) >= 12 {
				tpid := uint16(unix.ETH_P_8021Q)
				if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
					tpid = aux.Vlan_tpid
				}
				tag := binary.BigEndian.AppendUint16(nil, tpid)
				tag = binary.BigEndian.AppendUint16(tag, aux.Vlan_tci)
				p.Data = append(p.Data[:12:12], append(tag, p.Data[12:]...)...)
			}
		}
	}
}

// Stop ends the capture and returns what it has seen. All that was sent to the device
// before is in: packets under way in the kernel are waited for. It ends the test if the
// capture had to leave something out. A second Stop returns the same.
func (c *Capture) Stop() []Packet {
	c.h.t.Helper()
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if !over {
		c.h.settle()
		var lost uint32
		c.file.SetReadDeadline(time.Unix(1, 0))
		<-c.done
		c.raw.Control(func(fd uintptr) {
			c.drain(int(fd))
			if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
				lost = s.Drops
			}
		})
		c.end()
		if lost > 0 {
			c.h.t.Fatalf("lab: host %s: capture on %s lost %d packets", c.h.Name, c.dev, lost)
		}
	}
	return c.Seen()
}

// Sent ends captures and returns what their hosts have sent, in the order of time.
func Sent(cs ...*Capture) (ps []Packet) {
	for _, c := range cs {
		c.h.t.Helper()
		ps = append(ps, slices.DeleteFunc(c.Stop(), func(p Packet) bool { return !p.Out })...)
	}
	slices.SortStableFunc(ps, func(a, b Packet) int { return a.Time.Compare(b.Time) })
	return ps
}

// end stops the reader and closes the socket.
func (c *Capture) end() {
	c.mu.Lock()
	over := c.over
	c.over = true
	c.mu.Unlock()
	if !over {
		c.file.SetReadDeadline(time.Unix(1, 0))
		<-c.done
		c.file.Close()
	}
}

// Seen returns what has passed the device so far.
func (c *Capture) Seen() []Packet {
	c.raw.Control(func(fd uintptr) { c.drain(int(fd)) }) // does nothing after Stop
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Packet(nil), c.seen...)
}

// Want waits until n of the packets match, and returns the first n of these. It ends
// the test when they do not come within 5 s. A nil match is true of every packet.
func (c *Capture) Want(n int, match func(p Packet) bool) []Packet {
	c.h.t.Helper()
	over := time.After(5 * time.Second)
	var got []Packet
	for at := 0; ; {
		c.mu.Lock()
		seen, more := c.seen, c.more
		c.mu.Unlock()
		for ; at < len(seen); at++ {
			if match == nil || match(seen[at]) {
				if got = append(got, seen[at]); len(got) == n {
					return got
				}
			}
		}
		select {
		case <-more:
		case <-over:
			c.h.t.Fatalf("lab: host %s: capture on %s: %d of %d packets within 5 s; it has seen %d\n%s",
				c.h.Name, c.dev, len(got), n, len(seen), Dump(seen))
		}
	}
}

// Dump writes packets for messages, at most 20 of them.
func Dump(ps []Packet) string {
	var b strings.Builder
	for i, p := range ps {
		if i == 20 {
			fmt.Fprintf(&b, "and %d more\n", len(ps)-i)
			break
		}
		way := "in "
		if p.Out {
			way = "out"
		}
		fmt.Fprintf(&b, "%s %s %4d bytes %s\n", p.Time.Format("05.000000"), way, len(p.Data), hexStart(p.Data))
	}
	return b.String()
}

func hexStart(b []byte) string {
	if len(b) > 96 {
		return fmt.Sprintf("%x...", b[:96])
	}
	return fmt.Sprintf("%x", b)
}

// settle returns when the kernel is done with the packets that were under way between
// devices. Those wait in one queue for each processor, together with those of the
// loopback: a datagram to itself, from each processor, comes behind them. Twice, since
// what leaves the queue may enter it again once: out of a tunnel.
func (h *Host) settle() {
	h.t.Helper()
	var err error
	h.Do(func() { err = onEachCPU(func() error { return errors.Join(echo(), echo()) }) })
	if err != nil {
		h.t.Fatalf("lab: host %s: settling: %v", h.Name, err)
	}
}

// onEachCPU runs f on each processor the process may use. The goroutine is locked to
// its thread.
func onEachCPU(f func() error) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &all)
	for cpu := range len(all) * strconv.IntSize {
		if !all.IsSet(cpu) {
			continue
		}
		one.Zero()
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// echo sends a datagram over the loopback and waits for it, on this thread.
func echo() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, []byte{0}, 0, self); err != nil {
		return err
	}
	_, _, err = unix.Recvfrom(fd, make([]byte, 1), 0)
	return err
}
