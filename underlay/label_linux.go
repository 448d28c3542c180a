package underlay

import (
	"time"
	"unsafe"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// noLabelFor is how long datagrams have no flow label of ours after the kernel has refused one.
const noLabelFor = 10 * time.Second

// unlabel takes the flow labels off messages that the kernel has refused with EINVAL, and reports whether there were any.
//
// While a socket of the network namespace has an exclusive lease of a label (IPV6_FLOWLABEL_MGR), the kernel refuses those that
// the sending socket has not leased; before Linux 5.3 it always does.
func (s *sender) unlabel(msgs []sys.Mmsghdr) bool {
	if !s.label || s.bare {
		return false
	}
	s.bare = true
	for i := range msgs {
		h := &msgs[i].Hdr
		left := int(h.Controllen) - sys.CmsgInt
		h.SetControllen(left)
		if h.Control = (*byte)(unsafe.Add(unsafe.Pointer(h.Control), sys.CmsgInt)); left == 0 {
			h.Control = nil
		}
	}
	return true
}

// refused notes that messages were sent without the label that the kernel had refused them with.
func (u *base) refused() {
	if !u.noLabels.Swap(true) {
		time.AfterFunc(noLabelFor, func() { u.noLabels.Store(false) })
	}
}
