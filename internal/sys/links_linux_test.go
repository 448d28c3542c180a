package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// linksOf returns the devices of a host.
func linksOf(t *testing.T, h *netns.Host) (l *Links) {
	t.Helper()
	h.Do(func() {
		var err error
		if l, err = OpenLinks(); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(l.Close)
	return l
}

func TestLinks(t *testing.T) {
	n := netns.New(t)
	h, far := n.Host("h"), n.Host("far")
	a, b := linksOf(t, h), linksOf(t, far)
	must := func(err error) {
		t.Helper()
		check.OK(t, err)
	}
	must(AddVeth(VethEnd{In: a, Name: "x%d", MTU: 9000}, VethEnd{In: b, Name: "y", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}))
	x, err := a.ByName("x0")
	must(err)
	id, err := a.ID(b)
	must(err)
	if x.Kind != "veth" || x.MTU != 9000 || !x.Ethernet || x.PeerNS != id || id < 0 {
		t.Errorf("%+v, namespace %d", x, id)
	}
	y, err := a.ByIndex(x.Peer, x.PeerNS)
	must(err)
	if y.Name != "y" || y.Index != x.Peer || y.Peer != x.Index || y.MTU != 1500 || far.MAC("y") != "02:00:00:00:00:01" {
		t.Errorf("%+v, MAC %s", y, far.MAC("y"))
	}
	must(b.Change(y.Index, LinkChange{NoIPv6: true}))
	must(b.Change(y.Index, LinkChange{MTU: 1400, MAC: [6]byte{2, 0, 0, 0, 0, 2}, Up: true}))
	must(a.Change(x.Index, LinkChange{Up: true}))
	far.Ready()
	if y, _ = b.ByName("y"); y.MTU != 1400 || far.MAC("y") != "02:00:00:00:00:02" {
		t.Errorf("%+v, MAC %s", y, far.MAC("y"))
	}
	if out := far.IP("-6", "addr", "show", "dev", "y"); out != "" {
		t.Errorf("an address:\n%s", out)
	}
	for _, on := range []bool{true, false} {
		must(b.Feature(y.Index, FeatureGRO, on))
		must(b.Feature(y.Index, FeatureTSO, on))
		word := map[bool]string{true: "on", false: "off"}[on]
		if out := far.Run("ethtool", "-k", "y"); !strings.Contains(out, "generic-receive-offload: "+word) || !strings.Contains(out, "tx-tcp-segmentation: "+word) {
			t.Errorf("want GRO and TSO %s:\n%s", word, out)
		}
	}
	for what, err := range map[string]error{"name": second(a.ByName("none")), "index": second(a.ByIndex(9999, Here)), "namespace": second(a.ByIndex(x.Peer, 9999)), "Delete": a.Delete(9999), "Feature": a.Feature(9999, FeatureGRO, true)} {
		if want := map[bool]error{true: syscall.EINVAL, false: syscall.ENODEV}[what == "namespace"]; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	if err := AddVeth(VethEnd{In: a, Name: "x0"}, VethEnd{In: b, Name: "z"}); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("a name that is taken: %v", err)
	}
	must(a.Delete(x.Index))
	if _, err := b.ByName("y"); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("the other end: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A namespace without a name is a place of its own, and goes with what is in it.
func TestNewNamespace(t *testing.T) {
	h := netns.New(t).Host("h")
	a := linksOf(t, h)
	hidden, err := NewNamespace()
	check.OK(t, err)
	inode := func() (ino uint64) {
		var st unix.Stat_t
		unix.Stat("/proc/thread-self/ns/net", &st)
		return st.Ino
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, there := inode(), uint64(0)
	if err := hidden.Do(func() error { there = inode(); return nil }); err != nil || there == here || here != inode() {
		t.Errorf("%v: %d here, %d there", err, here, there)
	}
	check.OK(t, AddVeth(VethEnd{In: hidden, Name: "x"}, VethEnd{In: a, Name: "y"}))
	hidden.Close()
	h.Until("the namespace is gone, and y", func() bool { _, err := a.ByName("y"); return errors.Is(err, syscall.ENODEV) })
}

// What the kernel calls the instructions, in its own order of bytes.
func TestRedirectProgram(t *testing.T) {
	for to, helper := range map[Redirect]int{{Index: 0x01020304}: 23, {Index: 7, Peer: true}: 155} {
		var want []byte
		reg := func(n byte) byte {
			if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
				n <<= 4
			}
			return n
		}
		for _, i := range []struct {
			op, dst byte
			imm     int
		}{{0xb7, 1, to.Index}, {0xb7, 2, 0}, {0x85, 0, helper}, {0x95, 0, 0}} {
			want = append(want, i.op, reg(i.dst), 0, 0)
			want = binary.NativeEndian.AppendUint32(want, uint32(i.imm))
		}
		if got := to.program(); !bytes.Equal(got, want) {
			t.Errorf("%+v\n got %x\nwant %x", to, got, want)
		}
	}
}

func TestAttachRedirectErrors(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Do(func() {
		if l, err := AttachRedirect(9999, Redirect{Index: 1}); !errors.Is(err, syscall.ENODEV) || fmt.Sprint(err) != "BPF_LINK_CREATE: no such device" {
			t.Errorf("%v, %v", l, err)
		}
		l := check.Must(AttachRedirect(1, Redirect{Index: 1}))(t)
		l.Close()
	})
}
