package sys

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMmsghdrLayout(t *testing.T) {
	want := (unsafe.Sizeof(unix.Msghdr{}) + 4 + uintptr(long) - 1) &^ (uintptr(long) - 1)
	if got := unsafe.Sizeof(Mmsghdr{}); got != want {
		t.Errorf("struct mmsghdr has %d bytes, want %d", got, want)
	}
}

// x/sys's own parser, which allocates, is the oracle.
func TestPutCmsgInt(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, 3*CmsgInt)
	n := PutCmsgInt(b, unix.IPPROTO_IP, unix.IP_TOS, 0xb8)
	n += PutCmsgInt(b[n:], unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, 77)
	n += PutCmsgInt(b[n:], unix.SOL_UDP, unix.UDP_GRO, 1400)
	if n != 3*unix.CmsgSpace(4) {
		t.Fatalf("%d bytes, want %d", n, 3*unix.CmsgSpace(4))
	}
	ms, err := unix.ParseSocketControlMessage(b[:n])
	if err != nil || len(ms) != 3 {
		t.Fatal(ms, err)
	}
	if h := ms[1].Header; h.Level != unix.IPPROTO_IPV6 || h.Type != unix.IPV6_HOPLIMIT || ms[1].Data[0]+ms[1].Data[3] != 77 {
		t.Errorf("%+v", ms[1])
	}
	var r RxInfo
	r.Parse(b[:n])
	if r.TOS != 0xb8 || r.TTL != 77 || r.Segment != 1400 || r.HasDst {
		t.Errorf("%+v", r)
	}
}

func TestPutCmsgU16(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, CmsgInt)
	if n := PutCmsgU16(b, unix.SOL_UDP, unix.UDP_SEGMENT, 1400); n != CmsgInt || n != unix.CmsgSpace(2) {
		t.Fatalf("%d bytes, want %d", n, unix.CmsgSpace(2))
	}
	ms, err := unix.ParseSocketControlMessage(b)
	if err != nil || len(ms) != 1 || len(ms[0].Data) != 2 || binary.NativeEndian.Uint16(ms[0].Data) != 1400 {
		t.Fatal(ms, err)
	}
	if h := ms[0].Header; h.Level != unix.SOL_UDP || h.Type != unix.UDP_SEGMENT {
		t.Errorf("%+v", h)
	}
}

func TestRxInfoOverwrites(t *testing.T) {
	r := RxInfo{Segment: 9, If: 1, TOS: 2, TTL: 3, HasDst: true, Dst: [16]byte{1}}
	if r.Parse(nil); r != (RxInfo{}) {
		t.Errorf("%+v", r)
	}
}

func FuzzControlMessages(f *testing.F) {
	b := make([]byte, 2*CmsgInt)
	PutCmsgInt(b[PutCmsgInt(b, unix.IPPROTO_IP, unix.IP_TTL, 64):], unix.SOL_SOCKET, unix.SO_TIMESTAMP, 5)
	f.Add(b)
	f.Add(b[:CmsgInt-1])
	aux := make([]byte, unix.CmsgSpace(auxdataLen))
	binary.NativeEndian.PutUint64(aux, uint64(unix.CmsgLen(auxdataLen)))
	binary.NativeEndian.PutUint32(aux[long:], unix.SOL_PACKET)
	binary.NativeEndian.PutUint32(aux[long+4:], unix.PACKET_AUXDATA)
	binary.NativeEndian.PutUint32(aux[cmsgHdr:], unix.TP_STATUS_VLAN_VALID|unix.TP_STATUS_CSUMNOTREADY)
	f.Add(aux)
	f.Add(getLink(3))
	f.Add(append(unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: 3}), unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: 4})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r RxInfo
		r.Parse(b)
		var e QueuedError
		e.parse(b)
		var aux PacketAux
		aux.parse(b)
		if !aux.VLAN && aux != (PacketAux{Unfinished: aux.Unfinished}) {
			t.Fatalf("%+v", aux)
		}
		w := LinkWatch{index: 3}
		if s, ok, _ := w.last(b); !ok && s.Gone {
			t.Fatalf("%+v", s)
		}
		// What x/sys can parse, we see message by message.
		ms, err := unix.ParseSocketControlMessage(b)
		if err != nil {
			return
		}
		rest := b
		for i := range ms {
			level, typ, data, next, ok := NextCmsg(rest)
			if !ok || int32(level) != ms[i].Header.Level || int32(typ) != ms[i].Header.Type || !bytes.Equal(data, ms[i].Data) {
				t.Fatalf("message %d: %d %d %x %v, want %+v", i, level, typ, data, ok, ms[i])
			}
			if len(next) >= len(rest) {
				t.Fatal("no progress")
			}
			rest = next
		}
	})
}

func TestSockaddr(t *testing.T) {
	for _, s := range []string{"192.0.2.1:4789", "[2001:db8::1]:4789", "[fe80::1%3]:65535", "0.0.0.0:0"} {
		ap := netip.MustParseAddrPort(s)
		e := check.Must(frame.EndpointFrom(ap))(t)
		is4 := ap.Addr().Is4()
		sa := Sockaddr{Flowinfo: 0xffffffff, Scope_id: 9}
		n := PutSockaddr(&sa, &e, is4)
		if got, ok := Endpoint(&sa, n); !ok || got != e {
			t.Errorf("%s: %v %v", s, got, ok)
		}
		if PutSockaddr(&sa, &e, !is4) != 0 {
			t.Errorf("%s: taken by the other family", s)
		}
		if _, ok := Endpoint(&sa, 2); ok {
			t.Error("short address accepted")
		}
	}
	if _, ok := Endpoint(&Sockaddr{Family: unix.AF_UNIX}, 28); ok {
		t.Error("AF_UNIX accepted")
	}
}
