package sys

import (
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// auxdata is a control message as the kernel makes it.
func auxdata(status uint32, tci, tpid uint16) []byte {
	b := make([]byte, unix.CmsgSpace(auxdataLen))
	putCmsg(b, unix.SOL_PACKET, unix.PACKET_AUXDATA, 4)
	if long == 8 {
		binary.NativeEndian.PutUint64(b, uint64(cmsgHdr+auxdataLen))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(cmsgHdr+auxdataLen))
	}
	d := b[cmsgHdr:]
	binary.NativeEndian.PutUint32(d, status)
	binary.NativeEndian.PutUint16(d[16:], tci)
	binary.NativeEndian.PutUint16(d[18:], tpid)
	return b
}

func TestPacketAux(t *testing.T) {
	const both = unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID
	other := make([]byte, CmsgInt)
	PutCmsgInt(other, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
	for name, c := range map[string]struct {
		b    []byte
		want PacketAux
	}{
		"nothing":    {nil, PacketAux{}},
		"plain":      {auxdata(unix.TP_STATUS_USER, 7, 0x8100), PacketAux{}},
		"tag":        {auxdata(both, 0x6007, 0x88a8), PacketAux{VLAN: true, TCI: 0x6007, TPID: 0x88a8}},
		"VLAN 0":     {auxdata(both, 0, 0x8100), PacketAux{VLAN: true, TPID: 0x8100}},
		"no TPID":    {auxdata(unix.TP_STATUS_VLAN_VALID, 5, 0), PacketAux{VLAN: true, TCI: 5, TPID: 0x8100}},
		"unfinished": {auxdata(unix.TP_STATUS_CSUMNOTREADY, 0, 0), PacketAux{Unfinished: true}},
		"second":     {append(other, auxdata(both, 9, 0x8100)...), PacketAux{VLAN: true, TCI: 9, TPID: 0x8100}},
		"cut":        {auxdata(both, 9, 0x8100)[:cmsgHdr+16], PacketAux{}},
	} {
		var got PacketAux
		if got.parse(c.b); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Close holds the lock while the kernel closes sockets; a Read that it ended does not wait for that.
func TestPacketEndedWhileClosing(t *testing.T) {
	p := NewPacketInterface("sys", "Config", "eth0", nil)
	p.closed.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- p.Ended(os.ErrDeadlineExceeded) }()
	select {
	case err := <-done:
		if err != net.ErrClosed {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("waits for Close")
	}
}

// message is one of rtnetlink about an interface.
func message(typ uint16, family byte, index, mtu uint32) []byte {
	b := getLink(index)
	binary.NativeEndian.PutUint16(b[4:], typ)
	b[infoAt] = family
	binary.NativeEndian.PutUint16(b[infoAt+2:], unix.ARPHRD_ETHER)
	b = binary.NativeEndian.AppendUint16(b, 8)
	b = binary.NativeEndian.AppendUint16(b, unix.IFLA_MTU)
	b = binary.NativeEndian.AppendUint32(b, mtu)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

func failure(errno unix.Errno) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.NLMSG_ERROR)
	binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr:], uint32(-int32(errno)))
	return b
}

func TestLinkWatchMessages(t *testing.T) {
	join := func(ms ...[]byte) (all []byte) {
		for _, m := range ms {
			all = append(all, m...)
		}
		return all
	}
	link := func(mtu uint32) []byte { return message(unix.RTM_NEWLINK, unix.AF_UNSPEC, 3, mtu) }
	for name, c := range map[string]struct {
		b    []byte
		want LinkState
		ok   bool
		err  error
	}{
		"nothing":        {},
		"another":        {b: message(unix.RTM_NEWLINK, unix.AF_UNSPEC, 4, 1500)},
		"MTU":            {link(1500), LinkState{MTU: 1500, Ethernet: true}, true, nil},
		"the last":       {join(link(1500), message(unix.RTM_DELLINK, unix.AF_UNSPEC, 4, 0), link(1600)), LinkState{MTU: 1600, Ethernet: true}, true, nil},
		"deleted":        {join(link(1500), message(unix.RTM_DELLINK, unix.AF_UNSPEC, 3, 1500)), LinkState{Gone: true}, true, nil},
		"left a bridge":  {b: message(unix.RTM_DELLINK, unix.AF_BRIDGE, 3, 1500)},
		"there is none":  {failure(unix.ENODEV), LinkState{Gone: true}, true, nil},
		"failure":        {b: failure(unix.EPERM), err: unix.EPERM},
		"cut":            {b: link(1500)[:attrAt+6]},
		"length 0":       {b: make([]byte, 40)},
		"longer than it": {b: binary.NativeEndian.AppendUint32(nil, 1000)},
	} {
		w := &LinkWatch{index: 3}
		if s, ok, err := w.last(c.b); s != c.want || ok != c.ok || err != c.err {
			t.Errorf("%s: %+v, %v, %v", name, s, ok, err)
		}
	}
}
