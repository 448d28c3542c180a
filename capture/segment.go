package capture

import "github.com/vxswitch/vxswitch/frame"

// tap is a Capture as the switch's Tap.
type tap Capture

// Frame captures a frame of a segment.
func (t *tap) Frame(vni frame.VNI, port string, f *frame.Frame) {
	files := t.on.Load()
	if files == nil {
		return
	}
	for _, file := range *files {
		if file.sel.VNI != nil && *file.sel.VNI == vni {
			parts := [1][]byte{f.Bytes()}
			file.put(of(port, f), f.Kind, now(), f.Len(), parts[:], nil)
		}
	}
}
