package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The ports of the node between which the probe's frames go, and their EtherType, one for experiments.
const (
	portA     = "pa"
	portB     = "pb"
	etherType = 0x88b5
)

// probeProgram is the variable of the environment that makes this program a probe.
const probeProgram = "VXSWITCH_EVPN_PROBE"

// A probe sends a frame from one port of the node to the other every millisecond, in a program of its own, and says how long each took.
type probe struct {
	t    *testing.T
	proc *netns.Proc
	conn net.Conn
	in   *bufio.Reader
}

func startProbe(t *testing.T, h *netns.Host) *probe {
	socket := filepath.Join(t.TempDir(), "probe")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &probe{t: t, proc: h.Start(ahead[0], append(ahead[1:], probeProgram+"="+socket, exe)...)}
	p.proc.Want("ready")
	if p.conn, err = net.Dial("unix", socket); err != nil {
		t.Fatal(err)
	}
	p.in = bufio.NewReader(p.conn)
	return p
}

// took returns how many microseconds each frame took since the last call. All must have come.
func (p *probe) took() (list []float64) {
	p.t.Helper()
	p.conn.SetDeadline(time.Now().Add(soon))
	_, err := fmt.Fprintln(p.conn, "took")
	line := ""
	if err == nil {
		line, err = p.in.ReadString('\n')
	}
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(line)
	lost, _ := strconv.Atoi(fields[0])
	if lost != 0 {
		p.t.Errorf("%d of %d frames between two ports are lost", lost, lost+len(fields)-1)
	}
	for _, f := range fields[1:] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		p.t.Fatal("no frame came")
	}
	return list
}

func (p *probe) stop() { p.conn.Close(); p.proc.Kill() }

// flights are the frames of a probe.
type flights struct {
	sync.Mutex
	sent, come int
	took       []int64 // µs
}

// serveProbe is the probe. It listens on a socket and prints "ready".
func serveProbe(socket string) error {
	in, err := openPort(portB)
	if err != nil {
		return err
	}
	out, err := openPort(portA)
	if err != nil {
		return err
	}
	a, b := frame.MAC{2, 0xff, 0, 0, 0, 1}, frame.MAC{2, 0xff, 0, 0, 0, 2}
	if _, err := unix.Write(in, probeFrame(a, b)); err != nil { // the node learns where b is
		return err
	}
	time.Sleep(100 * time.Millisecond)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	var f flights
	begun := time.Now()
	go f.send(out, probeFrame(b, a), begun)
	go f.receive(in, begun)
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		fmt.Fprintln(c, f.report())
	}
	return nil
}

// report returns how many frames were lost and how long the others took. It waits for those under way.
func (f *flights) report() string {
	f.Lock()
	sent, deadline := f.sent, time.Now().Add(time.Second)
	for f.come < sent && time.Now().Before(deadline) {
		f.Unlock()
		time.Sleep(time.Millisecond)
		f.Lock()
	}
	defer f.Unlock()
	lost := max(0, sent-f.come)
	f.sent, f.come = f.sent-sent, f.come-sent+lost
	took := slices.Clone(f.took)
	f.took = nil
	return strings.Trim(fmt.Sprint(append([]int64{int64(lost)}, took...)), "[]")
}

func (f *flights) send(fd int, p []byte, begun time.Time) {
	for {
		time.Sleep(time.Millisecond)
		f.Lock()
		f.sent++
		f.Unlock()
		binary.BigEndian.PutUint64(p[14:], uint64(time.Since(begun)))
		unix.Write(fd, p)
	}
}

func (f *flights) receive(fd int, begun time.Time) {
	p := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(fd, p, 0)
		if err != nil {
			return
		}
		if at, ok := from.(*unix.SockaddrLinklayer); n < 22 || !ok || at.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		took := time.Since(begun) - time.Duration(binary.BigEndian.Uint64(p[14:]))
		f.Lock()
		f.come++
		f.took = append(f.took, took.Microseconds())
		f.Unlock()
	}
}

// probeFrame returns a frame with room for a time.
func probeFrame(dst, src frame.MAC) []byte {
	p := make([]byte, 60)
	copy(p, dst[:])
	copy(p[6:], src[:])
	binary.BigEndian.PutUint16(p[12:], etherType)
	return p
}

// openPort opens a packet socket for the probe's frames on an interface.
func openPort(name string) (int, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	const protocol = etherType>>8 | etherType&0xff<<8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: ifi.Index})
}

// busy runs two programs that compute until stop is called.
func busy(t *testing.T) (stop func()) {
	var list []*netns.Process
	for range 2 {
		p, err := netns.Start(t.Context(), "", "sh", "-c", "while :; do :; done")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		list = append(list, p)
	}
	return func() {
		for _, p := range list {
			p.Kill()
		}
	}
}
