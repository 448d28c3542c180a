package frame

import (
	"encoding/json"
	"iter"
)

// Count is a number of frames and of their bytes, from the destination MAC on. A
// superframe is one frame, as in counters of the kernel.
type Count struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
}

// Drops is a number of frames for each reason.
type Drops [NumReasons]uint64

// All iterates over the reasons that are not zero, in the order of the constants.
func (d *Drops) All() iter.Seq2[Reason, uint64] {
	return func(yield func(Reason, uint64) bool) {
		for r, n := range d {
			if n != 0 && !yield(Reason(r), n) {
				return
			}
		}
	}
}

// Total returns the sum over all reasons.
func (d *Drops) Total() (n uint64) {
	for _, x := range d {
		n += x
	}
	return n
}

// MarshalJSON writes the reasons that are not zero by name: {"short":3}.
func (d Drops) MarshalJSON() ([]byte, error) {
	m := map[string]uint64{}
	for r, n := range d.All() {
		m[r.String()] = n
	}
	return json.Marshal(m)
}
