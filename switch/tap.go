package vswitch

import "github.com/vxswitch/vxswitch/frame"

// A Tap sees the frames of segments at each attachment: those that come in, also if they are then dropped, and those that go
// out. A frame that is forwarded is seen at both ends, one that is flooded once more at each port. The tag of the attachment
// is not in it. A superframe is whole.
//
// Workers call Frame with the name of the port. It must not block, allocate, change the frame or keep it.
type Tap interface {
	Frame(vni frame.VNI, port string, f *frame.Frame)
}

// SetTap has t see all frames from the next batches on, instead of the Tap before. With nil, nobody does, and batches cost
// nothing more. A worker may call the Tap before once more, for the batch that it handles.
func (s *Switch) SetTap(t Tap) {
	if t == nil {
		s.tap.Store(nil)
		return
	}
	s.tap.Store(&t)
	s.changed()
}

// tapped shows the Tap the frames of a list that is about to be written.
func (w *worker) tapped(x *egress) {
	for i := range x.out {
		f := x.out[i].F
		w.tap.Frame(f.VNI, x.port.name, f)
	}
}
