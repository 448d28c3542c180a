package datagrams

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestRefusedRun(t *testing.T) {
	for e, want := range map[syscall.Errno]bool{
		unix.EIO: true, unix.EINVAL: true, unix.EMSGSIZE: true,
		unix.ENOBUFS: false, unix.EAGAIN: false, unix.EPERM: false, unix.ECONNREFUSED: false,
	} {
		if RefusedRun(e) != want {
			t.Errorf("%v: %v", e, !want)
		}
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte{3, 0, 5, 9}, uint16(4), uint16(12))
	f.Fuzz(func(t *testing.T, lens []byte, seg, n uint16) {
		o := NewOutbox()
		if seg == 0 {
			return
		}
		var parts [][]byte
		var all []byte
		for i, l := range lens {
			p := bytes.Repeat([]byte{byte(i)}, int(l))
			parts, all = append(parts, p), append(all, p...)
		}
		c := At(parts, 0)
		for len(all) > 0 {
			want := min(int(n)+1, len(all))
			iov, took := o.Take(0, &c, want, int(seg))
			var b []byte
			for i := range iov {
				b = append(b, unsafe.Slice(iov[i].Base, iov[i].Len)...)
			}
			if len(iov) > MaxIov || len(b) != took || !bytes.Equal(b, all[:took]) {
				t.Fatalf("%d pieces, %d bytes, want %d", len(iov), len(b), took)
			}
			if took < want && took%int(seg) != 0 || took == 0 && int(seg) < MaxIov {
				t.Fatalf("%d bytes of %d with segments of %d", took, want, seg)
			}
			if took == 0 {
				took = min(int(seg), len(all))
				c.Skip(took)
			}
			all = all[took:]
			o.Clear()
		}
	})
}
