package l3

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// noTunnel is a Tunnel whose methods need one.
type noTunnel struct{ name string }

func (n *noTunnel) PeerName(uint16) string { return n.name }
func (n *noTunnel) Failed(uint16) bool     { return n.name == "" }

// A tunnel that is a nil pointer is an error, where none would do.
func TestNilTunnel(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	_, err := NewCrossConnect(&CrossConnectConfig{Near: frame.NewDest(1, 0), Far: frame.NewDest(2, 1), Tunnel: (*noTunnel)(nil), Send: send})
	check.ErrorHas(t, err, "l3: CrossConnectConfig.Tunnel: ")
	g, err := NewGateway(nil)
	check.OK(t, err)
	_, err = g.VRF("").NewInterface(&InterfaceConfig{VNI: 1, Send: send, Port: frame.NewDest(1, 0), Tunnel: (*noTunnel)(nil)})
	check.ErrorHas(t, err, "l3: ", "InterfaceConfig.Tunnel: ")
}
