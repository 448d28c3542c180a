package vswitch_test

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// bare is a port with these receive queues.
type bare struct{ readers []frame.Reader }

func (b *bare) Readers() []frame.Reader { return b.readers }
func (*bare) Writer(int) frame.Writer   { return nil }
func (*bare) MTU(uint16) int            { return 1514 }
func (*bare) Close() error              { return nil }

// A port that is none, or that its constructor has not made, is an error, and takes no place.
func TestAttachNothing(t *testing.T) {
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	vsi := check.Must(sw.VSI(1, nil))(t)
	for name, p := range map[string]vswitch.Port{
		"nil":                  nil,
		"nil Device":           (*port.Device)(nil),
		"nil Packet":           (*port.Packet)(nil),
		"nil Pipe":             (*port.Pipe)(nil),
		"nil ReadWriteCloser":  (*port.ReadWriteCloser)(nil),
		"nil VTEP":             (*vtep.VTEP)(nil),
		"zero Device":          new(port.Device),
		"zero Packet":          new(port.Packet),
		"zero Pipe":            new(port.Pipe),
		"zero ReadWriteCloser": new(port.ReadWriteCloser),
		"zero VTEP":            new(vtep.VTEP),
		"no queue":             new(bare),
		"a nil queue":          &bare{[]frame.Reader{nil}},
		"a nil reader":         &bare{[]frame.Reader{new(failing), (*failing)(nil)}},
	} {
		for range 2 {
			if a, err := vsi.Attach(p, 0); a != nil || err == nil || !strings.HasPrefix(err.Error(), "vswitch: attach to VSI 1 with tag 0: port: ") {
				t.Errorf("%s: %v, %v", name, a, err)
			}
		}
	}
	if n := len(sw.Stats().Ports); n != 1 || len(vsi.Attachments()) != 0 {
		t.Errorf("%d ports, %d members", n, len(vsi.Attachments()))
	}
	a := check.Must(vsi.Attach(port.NewPipe(nil), 0))(t)
	check.Equal(t, "the first port", a.Dest(0).Port(), 1)
}

type failing struct{}

func (*failing) Read(*frame.Batch) error { panic("read") }

// A slot holds a stage or nil, and no nil of a type, alone or in a chain.
func TestSlotsOfNothing(t *testing.T) {
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	vsi := check.Must(sw.VSI(1, nil))(t)
	a := check.Must(vsi.Attach(port.NewPipe(nil), 0))(t)
	for name, slots := range map[string]vswitch.Slots{
		"Ingress":   {Ingress: (*policy.Guard)(nil)},
		"Neighbour": {Neighbour: vswitch.Chain(vswitch.NoTooBig{}, nil)},
		"Gateway":   {Gateway: (*l3.Interface)(nil)},
		"TooBig":    {TooBig: vswitch.Chain(vswitch.Chain((*l3.Interface)(nil)))},
		"Egress":    {Egress: (*policy.Guard)(nil)},
	} {
		_, made := sw.VSI(2, &vswitch.VSIConfig{Slots: slots})
		_, attached := vsi.AttachWith(port.NewPipe(nil), 0, &vswitch.AttachConfig{Slots: slots})
		for _, err := range []error{
			made, vsi.Configure(vswitch.VSIConfig{Slots: slots}), attached, a.Configure(vswitch.AttachConfig{Slots: slots}),
		} {
			check.ErrorHas(t, err, "vswitch: ", "Config.Slots."+name+": the ")
		}
	}
	check.OK(t, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: vswitch.Chain()}}))
}
