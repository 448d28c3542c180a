package flannel

import (
	"fmt"

	"github.com/vxswitch/vxswitch/setting"
)

// A Reason says why a lease of another node is not followed. Each is counted by its name.
type Reason uint8

// Reasons. Those up to NoSubnet are what is wrong with a lease whatever the network is.
const (
	BadKey      Reason = iota // the key, or the pod CIDR, is not that of a subnet
	HostBits                  // it has host bits: its address is not the first of the subnet
	Oversize                  // the value is longer than a lease can be
	BadValue                  // the value is not JSON as flannel writes it
	BadPublicIP               // the public address is missing, or not that of one host
	BadData                   // the data of the backend are missing, or not JSON as flannel writes it
	BadMAC                    // the VTEP's MAC is zero or that of a group
	NoSubnet                  // the node has no pod CIDR

	OtherBackend // the node has another backend
	OtherVNI     // the node has another VNI
	OtherFamily  // the lease has no subnet of a family that the network has
	Outside      // the subnet is not in the network
	Inside       // the public address is in the network, whose packets need it
	OwnSubnet    // the subnet is in our own, or has its first address
	OwnPublicIP  // the public address is ours
	OwnMAC       // the VTEP's MAC is ours
	SameSubnet   // an older lease has the subnet, one around it, or one with its first address
	SameMAC      // an older lease has the VTEP's MAC, with another public address
	OffLink      // the backend needs the public address on a link of ours
	Unroutable   // the switch has refused the rows
	TooMany      // more leases than a node keeps: counted by the changes since the last snapshot, and not listed

	reasons
)

var reasonWords = []string{
	BadKey: "key", HostBits: "host-bits", Oversize: "oversize", BadValue: "value", BadPublicIP: "public-ip", BadData: "data", BadMAC: "mac", NoSubnet: "no-subnet",
	OtherBackend: "backend", OtherVNI: "vni", OtherFamily: "family", Outside: "outside", Inside: "inside", OwnSubnet: "own-subnet", OwnPublicIP: "own-public-ip",
	OwnMAC: "own-mac", SameSubnet: "same-subnet", SameMAC: "same-mac", OffLink: "off-link", Unroutable: "unroutable", TooMany: "too-many",
}

// String returns the name of a reason.
func (r Reason) String() string { return setting.Name(reasonWords, r) }

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// A Refusal is a lease that is not followed, and why.
type Refusal struct {
	Key    string
	Reason Reason
	Detail string // what is wrong, and what is allowed
}

// maxDetail is how many bytes of a detail are kept: it may have something of the lease in it.
const maxDetail = 300

func refusal(key string, r Reason, format string, args ...any) *Refusal {
	return &Refusal{clip(key, maxName), r, clip(fmt.Sprintf(format, args...), maxDetail)}
}

// Error returns the refusal in one line.
func (r *Refusal) Error() string {
	return fmt.Sprintf("flannel: lease %q: %v: %s", r.Key, r.Reason, r.Detail)
}
