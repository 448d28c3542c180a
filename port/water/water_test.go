package water

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/songgao/water"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// tunOver is a TUN interface over anything.
func tunOver(rwc io.ReadWriteCloser) *water.Interface { return &water.Interface{ReadWriteCloser: rwc} }

// miscounting fails as a macOS TUN does.
type miscounting struct{}

var errBroken = errors.New("broken")

func (miscounting) Read([]byte) (int, error)  { return -4, errBroken }
func (miscounting) Write([]byte) (int, error) { return -4, errBroken }
func (miscounting) Close() error              { return nil }

// A failed call of a macOS TUN counts -4 bytes.
func TestWaterCountsBelowZero(t *testing.T) {
	p, err := From(tunOver(miscounting{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Readers()[0].Read(frame.NewBatch(nil)); !errors.Is(err, errBroken) {
		t.Errorf("Read: %v", err)
	}
	o := fake.Outs([]byte{0x45})
	o[0].F.Kind = frame.IPv4
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != frame.SendFailed {
		t.Errorf("Write: %v, %v", err, o[0].Drop)
	}
}

func TestWaterErrors(t *testing.T) {
	for _, ifce := range []*water.Interface{nil, {}} {
		if _, err := From(ifce, nil); err == nil {
			t.Error("a port of nothing")
		}
	}
	near, _ := net.Pipe()
	defer near.Close()
	if _, err := From(tunOver(near), &Config{MTU: -1}); err == nil || !strings.Contains(err.Error(), "Config.MTU") {
		t.Errorf("MTU -1: %v", err)
	}
	if p, err := From(tunOver(near), nil); err != nil || p.MTU(0) != 1500 || p.Name() != "water" {
		t.Errorf("MTU of an unknown device: %d, %v", p.MTU(0), err)
	}
	if p, err := From(tunOver(near), &Config{MTU: 1400}); err != nil || p.MTU(0) != 1400 {
		t.Errorf("MTU 1400: %d, %v", p.MTU(0), err)
	}
}
