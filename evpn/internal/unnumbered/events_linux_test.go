package unnumbered

import (
	"encoding/binary"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A message about the interface is one that it fell if it says so, or counts one more loss of the carrier than those before.
func TestFell(t *testing.T) {
	const up = unix.IFF_UP | unix.IFF_RUNNING
	message := func(of uint16, index, flags uint32, falls ...uint32) *syscall.NetlinkMessage {
		b := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(b[4:], index)
		binary.NativeEndian.PutUint32(b[8:], flags)
		for _, n := range falls {
			b = binary.NativeEndian.AppendUint16(b, 8)
			b = binary.NativeEndian.AppendUint16(b, carrierDownCount)
			b = binary.NativeEndian.AppendUint32(b, n)
		}
		return &syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: of}, Data: b}
	}
	e := &events{index: 7}
	for i, c := range []struct {
		m    *syscall.NetlinkMessage
		want bool
	}{
		{message(unix.RTM_NEWLINK, 7, up), false},
		{message(unix.RTM_NEWLINK, 7, up, 3), false}, // the first that counts
		{message(unix.RTM_NEWLINK, 7, up, 3), false},
		{message(unix.RTM_NEWLINK, 8, 0, 9), false},
		{message(unix.RTM_DELLINK, 8, 0), false},
		{message(unix.RTM_NEWADDR, 7, 0), false},
		{&syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWLINK}, Data: make([]byte, 3)}, false},
		{message(unix.RTM_NEWLINK, 7, up, 4), true}, // it is up again
		{message(unix.RTM_NEWLINK, 7, unix.IFF_UP), true},
		{message(unix.RTM_NEWLINK, 7, 0), true},
		{message(unix.RTM_DELLINK, 7, up), true},
	} {
		if got := e.fell(c.m); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
