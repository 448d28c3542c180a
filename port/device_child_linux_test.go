package port

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const childVar = "VXSWITCH_TEST_CHILD"

// packetJob has the child open a packet port.
const packetJob = "packet"

// vethJob has the child make a veth port for a guest, ifaceJob open a port on the interface eth0. It says how that
// went, and waits.
const (
	vethJob  = "veth"
	ifaceJob = "interface"
)

// child is what the test program does, instead of tests, as a child of a test: it
// gives up its privileges and says how far it gets without them.
func child() (is bool) {
	job, is := os.LookupEnv(childVar)
	if !is {
		return false
	}
	if job == vethJob || job == ifaceJob {
		open, name := OpenVeth, "e0"
		if job == ifaceJob {
			open, name = OpenInterface, "eth0"
		}
		d, err := open(name, nil)
		fmt.Println(errors.Is(err, os.ErrPermission), err)
		io.Copy(io.Discard, os.Stdin)
		if err == nil {
			d.Close()
		}
		return true
	}
	if err := syscall.Setuid(65534); err != nil {
		fmt.Println(err)
		return true
	}
	if job == packetJob {
		_, err := OpenPacket("lo", nil)
		fmt.Println(errors.Is(err, os.ErrPermission), err)
		return true
	}
	mtu, err := strconv.Atoi(job)
	if err != nil { // the name of a namespace
		for _, c := range []*DeviceConfig{nil, {Namespace: job}} {
			_, err := OpenTAP("vxs-denied", c)
			fmt.Println(errors.Is(err, os.ErrPermission), err)
		}
		return true
	}
	d, err := fromFD(3, &DeviceConfig{MTU: mtu})
	if err != nil {
		fmt.Println(err)
		return true
	}
	fmt.Printf("%s has MTU %d\n", d.Name(), d.MTU(0))
	done := guest(d, "10.9.0.2")
	io.Copy(io.Discard, os.Stdin)
	d.Close()
	fmt.Println(<-done)
	return true
}

// startChild runs this program as a child with files from descriptor 3 on. It ends
// when stdin is closed.
func startChild(t *testing.T, job string, files ...*os.File) (stdin io.Closer, lines *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), netns.Timeout)
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), childVar+"="+job)
	c.ExtraFiles = files
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		cancel()
	})
	return in, bufio.NewScanner(out)
}

func TestDeviceWithoutPrivilege(t *testing.T) {
	h := netns.New(t).Host("h")
	_, lines := startChild(t, h.NS)
	for _, want := range []string{
		`true port: TAP "vxs-denied": needs CAP_NET_ADMIN, or a persistent device that belongs to this user: `,
		fmt.Sprintf(`true port: TAP "vxs-denied": DeviceConfig.Namespace %q: entering the network namespace: operation not permitted`, h.NS),
	} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("\n got %s\nwant %s", lines.Text(), want)
		}
	}
}

// A privileged parent hands a child without privileges the queue of a device in a
// namespace that the child may not enter.
func TestDeviceFromAParent(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	for job, want := range map[string]int{"0": 1514, "1400": 1414} {
		f := os.NewFile(uintptr(attached(t, h, "tap0", plainTAP)), "tap0")
		h.Up("tap0")
		h.Addr("tap0", "10.9.0.1/24")
		stdin, lines := startChild(t, job, f)
		f.Close()
		if want := fmt.Sprintf("tap0 has MTU %d", want); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		h.Ping("10.9.0.2", 2)
		stdin.Close()
		if !lines.Scan() || lines.Text() != "use of closed network connection" {
			t.Errorf("got %q", lines.Text())
		}
		if has(t, h, "tap0") {
			t.Error("the device is there after Close")
		}
	}
}
