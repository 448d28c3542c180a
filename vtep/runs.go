package vtep

import (
	"unsafe"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// maxRun is the limit of datagrams in a run, which is that of one system call.
const maxRun = 64

// join joins consecutive datagrams that differ only in their payload, such as those of one flow, into runs. The
// underlay sends a run as one message, which the kernel or the network card cuts. Superframes, which are runs already, are
// joined too: 46 segments do not fit a message, and those that are left over go with the next superframe. l.span gets the
// number of datagrams in each.
func (w *writer) join(l *outbox) {
	l.span = l.span[:0]
	kept := 0
	for k := 0; k < len(l.ds); kept++ {
		n := 1
		if w.v.cfg.Type != encap.TypeIPIP { // raw sockets cannot cut
			n = runLen(l.ds[k:])
		}
		if kept != k {
			l.ds[kept] = l.ds[k]
		}
		if n > 1 {
			d, from := &l.ds[kept], len(w.runs)
			if d.Seg == 0 {
				d.Seg = uint16(size(d))
			}
			for i := range l.ds[k : k+n] {
				w.runs = append(w.runs, l.ds[k+i].Parts...)
			}
			d.Parts = w.runs[from:len(w.runs):len(w.runs)]
		}
		l.span = append(l.span, n)
		k += n
	}
	l.ds = l.ds[:kept]
}

// runLen returns how many of ds, from the first, form a run. All have one size, except that the last may be
// shorter.
func runLen(ds []frame.Datagram) int {
	d := &ds[0]
	n, full, super := 1, size(d), d.Seg != 0
	if super && tail(d) < full {
		return 1
	}
	for ; n < len(ds) && n < maxRun; n++ {
		x := &ds[n]
		if x.Flow != d.Flow || x.Seg != d.Seg && (x.Seg != 0 || !super) || x.TOS != d.TOS || x.TTL != d.TTL || x.DF != d.DF || x.Set != d.Set ||
			len(x.To) != len(d.To) || unsafe.SliceData(x.To) != unsafe.SliceData(d.To) {
			break
		}
		if size(x) > full {
			break
		} else if tail(x) < full {
			return n + 1
		}
	}
	return n
}

// size returns the length of a datagram of one header and one frame, or of the first segment of a run.
func size(d *frame.Datagram) int { return len(d.Parts[0]) + len(d.Parts[1]) }

// tail is size for the last segment of a run.
func tail(d *frame.Datagram) int {
	n := len(d.Parts)
	return len(d.Parts[n-2]) + len(d.Parts[n-1])
}
