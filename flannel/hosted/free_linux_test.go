package hosted

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// A device of somebody else is not said to be flanneld's, which may be deleted.
func TestForeignDevice(t *testing.T) {
	err := (&Config{Device: "lo"}).free()
	if err == nil || !strings.Contains(err.Error(), "device lo: is another one of this host") || strings.Contains(err.Error(), "delete") {
		t.Error(err)
	}
}

// A segment of the node with the network's VNI does not become that of the network.
func TestForeignSegment(t *testing.T) {
	n := check.Must(node.New(nil))(t)
	defer n.Close()
	check.OK(t, n.Apply(&node.Config{Segments: []node.Segment{{VNI: 7}}}))
	s := check.Must(New(&Config{Node: n, Device: "vxs-none7"}))(t)
	network, err := flannel.ParseNetwork([]byte(`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "VNI": 7}}`))
	check.OK(t, err)
	own := &flannel.Own{Lease: flannel.Lease{Subnet: flannel.Subnet{IPv4: netip.MustParsePrefix("10.3.1.0/24")}, Attrs: flannel.Attrs{Type: "vxlan",
		IPv4: flannel.End{PublicIP: netip.MustParseAddr("127.0.0.1"), VNI: 7, MAC: frame.MAC{2, 0, 0, 0, 0, 7}}}}}
	if _, err := s.Open(network, own, 3); err == nil || !strings.Contains(err.Error(), "VNI 7 of the network is that of a segment of this node") {
		t.Error(err)
	}
}
