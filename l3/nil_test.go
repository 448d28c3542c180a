package l3

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// noTunnel is a Tunnel whose methods need one.
type noTunnel struct{ name string }

func (n *noTunnel) PeerName(uint16) string { return n.name }
func (n *noTunnel) Failed(uint16) bool     { return n.name == "" }

// A tunnel that is a nil pointer is an error, where none would do.
func TestNilTunnel(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	_, err := NewCrossConnect(&CrossConnectConfig{Near: frame.NewDest(1, 0), Far: frame.NewDest(2, 1), Tunnel: (*noTunnel)(nil), Send: send})
	if err == nil || !strings.HasPrefix(err.Error(), "l3: CrossConnectConfig.Tunnel: ") {
		t.Errorf("NewCrossConnect: %v", err)
	}
	g, err := NewGateway(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.VRF("").NewInterface(&InterfaceConfig{VNI: 1, Send: send, Port: frame.NewDest(1, 0), Tunnel: (*noTunnel)(nil)})
	if err == nil || !strings.Contains(err.Error(), "InterfaceConfig.Tunnel: ") {
		t.Errorf("NewInterface: %v", err)
	}
}
