//go:build amd64 || arm64

package afpacket

import (
	"errors"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// Each system call of the constructor fails. Over IPv6 there are those of IPv4 and more, and the
// kernel takes long to close the sockets.
func TestConstructorFaults(t *testing.T) {
	v := underlaytest.NewVeth(t, true)
	underlaytest.Faults(t, v, "afpacket", func() (underlaytest.Underlay, error) {
		p, err := Listen(v.At(1, 4789), &Config{Device: "eth0", Queues: 2, MAC: frame.MAC{2, 1, 2, 3, 4, 5}})
		if err != nil {
			return nil, err
		}
		if err = p.Join(v.Group(1)); err != nil {
			return nil, errors.Join(err, underlaytest.Works(p))
		}
		return p, nil
	})
}
