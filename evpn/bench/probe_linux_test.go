package bench

import (
	"bufio"
	"bytes"
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
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The ports of the node between which the probe's frames go.
const (
	portA = "pa"
	portB = "pb"
)

// A way is that of frames through the node: its workers, which get those of an EtherType for experiments, or the kernel, which carries flows.
type way int

const (
	byUser way = iota
	byKernel
	ways
)

// frames are those of each way, at whose end there is room for a time.
var frames = [ways][]byte{
	byUser: slices.Concat(atob, []byte{0x88, 0xb5}, make([]byte, 40)),
	byKernel: slices.Concat(atob, []byte{0x08, 0x00}, []byte{0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0x26, 0xc7, 10, 0, 0, 1, 10, 0, 0, 2}, // IPv4
		[]byte{0x30, 0x39, 0x30, 0x39, 0, 16, 0, 0}, make([]byte, 8)), // UDP without a checksum
}

var (
	macA, macB = frame.MAC{2, 0xff, 0, 0, 0, 1}, frame.MAC{2, 0xff, 0, 0, 0, 2}
	atob       = slices.Concat(macB[:], macA[:])
)

// timeIn returns the place of the time in a frame, and the way that it is of; ok is false for frames of others.
func timeIn(p []byte) (at []byte, w way, ok bool) {
	for w, f := range frames {
		if n := len(f) - 8; len(p) >= len(f) && bytes.Equal(p[:n], f[:n]) {
			return p[n:], way(w), true
		}
	}
	return nil, 0, false
}

// probeProgram is the variable of the environment that makes this program a probe.
const probeProgram = "VXSWITCH_EVPN_PROBE"

// A probe sends a frame of each way from one device to another every millisecond, in a program of its own, and says how long each took.
type probe struct {
	t    *testing.T
	proc *netns.Proc
	conn net.Conn
	in   *bufio.Reader
}

func startProbe(t *testing.T, h *netns.Host, from, to string) *probe {
	socket := filepath.Join(t.TempDir(), "probe")
	p := &probe{t: t, proc: startSelf(t, h, ahead, probeProgram, socket, from, to)}
	p.conn, p.in = connect(t, socket)
	return p
}

// took returns how many microseconds each frame of a way took since the last call. All must have come.
func (p *probe) took(w way) (list []float64) {
	p.t.Helper()
	p.conn.SetDeadline(time.Now().Add(soon))
	_, err := fmt.Fprintln(p.conn, int(w))
	line := ""
	if err == nil {
		line, err = p.in.ReadString('\n')
	}
	check.OK(p.t, err)
	fields := strings.Fields(line)
	lost, _ := strconv.Atoi(fields[0])
	if lost != 0 {
		p.t.Errorf("%d of %d frames between two ports are lost", lost, lost+len(fields)-1)
	}
	for _, f := range fields[1:] {
		v := check.Must(strconv.ParseFloat(f, 64))(p.t)
		list = append(list, v/1000)
	}
	if len(list) == 0 {
		p.t.Fatal("no frame came")
	}
	return list
}

func (p *probe) stop() { p.conn.Close(); p.proc.Kill() }

// flights are the frames of a way.
type flights struct {
	sync.Mutex
	sent, come int
	took       []int64 // ns
}

// serveProbe is the probe, with the devices in its arguments. It listens on a socket and prints "ready".
func serveProbe(socket string) error {
	in, err := openPort(os.Args[2])
	if err != nil {
		return err
	}
	out, err := openPort(os.Args[1])
	if err != nil {
		return err
	}
	if _, err := unix.Write(in, slices.Concat(macA[:], macB[:], frames[byUser][12:])); err != nil { // the node learns where b is
		return err
	}
	time.Sleep(100 * time.Millisecond)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	var list [ways]flights
	go send(&list, out)
	go receive(&list, in)
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		w, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		fmt.Fprintln(c, list[w].report())
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

func send(list *[ways]flights, fd int) {
	for {
		time.Sleep(time.Millisecond)
		for w := range list {
			f, p := &list[w], frames[w]
			f.Lock()
			f.sent++
			f.Unlock()
			binary.BigEndian.PutUint64(p[len(p)-8:], uint64(time.Now().UnixNano()))
			unix.Write(fd, p)
		}
	}
}

// receive notes how long frames took until the kernel had them on the second port: when the probe gets to run is not the node's doing.
func receive(list *[ways]flights, fd int) {
	p, oob := make([]byte, 2048), make([]byte, 128)
	for {
		n, oobn, _, from, err := unix.Recvmsg(fd, p, oob, 0)
		if err != nil {
			return
		}
		at, w, ok := timeIn(p[:n])
		if from, is := from.(*unix.SockaddrLinklayer); !ok || !is || from.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		took := arrived(oob[:oobn]).UnixNano() - int64(binary.BigEndian.Uint64(at))
		f := &list[w]
		f.Lock()
		f.come++
		f.took = append(f.took, took)
		f.Unlock()
	}
}

// arrived returns when a frame came, by its control messages.
func arrived(oob []byte) time.Time {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(list) != 1 || list[0].Header.Type != unix.SCM_TIMESTAMPNS {
		panic(fmt.Sprint("no time of a frame: ", list, err))
	}
	return time.Unix(int64(binary.NativeEndian.Uint64(list[0].Data)), int64(binary.NativeEndian.Uint64(list[0].Data[8:])))
}

// openPort opens a packet socket on an interface, which says when frames come.
func openPort(name string) (int, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	const protocol = unix.ETH_P_ALL << 8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: ifi.Index})
}

// busy runs two programs that compute until stop is called.
func busy(t *testing.T) (stop func()) {
	var list []*netns.Process
	for range 2 {
		p := check.Must(netns.Start(t.Context(), "", "sh", "-c", "while :; do :; done"))(t)
		t.Cleanup(p.Kill)
		list = append(list, p)
	}
	return func() {
		for _, p := range list {
			p.Kill()
		}
	}
}
