package node

import (
	"context"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// oddSource matches frames of hosts with an odd MAC.
type oddSource struct{}

func (oddSource) Match(f *frame.Frame) bool { return f.Bytes()[11]&1 == 1 }

// A Matcher of the program's own chooses the segment of a frame, as the match of a file does.
func TestMatcherOfProgram(t *testing.T) {
	n := running(t)
	both, odd, even := port.NewPipe(&port.PipeConfig{Name: "both"}), port.NewPipe(&port.PipeConfig{Name: "odd"}), port.NewPipe(&port.PipeConfig{Name: "even"})
	one, two := addSegment(t, n, 1, nil), addSegment(t, n, 2, nil)
	must(t, one.Add(both, nil))
	must(t, one.Add(even, nil))
	must(t, two.Add(both, &Member{AttachConfig: vswitch.AttachConfig{Match: oddSource{}}}))
	must(t, two.Add(odd, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for i, p := range []*port.Pipe{even, odd, even} {
		must(t, both.Send(greeting(byte(i), 0)))
		b, err := p.Recv(ctx)
		must(t, err)
		if b[11] != byte(i) {
			t.Errorf("%s received a frame of host %d, want %d", p.Name(), b[11], i)
		}
	}
}
