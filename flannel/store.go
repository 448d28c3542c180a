package flannel

import (
	"context"
	"errors"
	"hash/maphash"
	"net/netip"
	"time"
)

// Errors of stores, wrapped in others.
var (
	ErrNoNetwork = errors.New("there is no network in the store")
	ErrTaken     = errors.New("somebody else has taken the subnet")
	ErrLost      = errors.New("the lease is lost")
	ErrFull      = errors.New("no subnet is free")
)

// A Store keeps the network and the leases of its nodes. [Registry] is one on top of a [KV]; stores that choose subnets in
// another way, such as the nodes of Kubernetes, are Stores themselves.
//
// All methods may be called at once. They wait for the store no longer than it has set itself, and not after ctx.
type Store interface {
	// Network reads the configuration. It returns an error that wraps ErrNoNetwork if there is none.
	Network(ctx context.Context) (*Network, error)

	// Acquire gets a lease for this node, an old one if it can. It returns an error that wraps ErrFull if there is no
	// subnet, and ErrTaken if others were faster each time.
	Acquire(ctx context.Context, n *Network, r Request) (*Own, error)

	// Renew makes the lease last for its time to live from now on. It returns an error that wraps ErrLost if the lease is
	// no longer that of own: somebody has changed or removed it. After any other error it may be called again.
	Renew(ctx context.Context, own *Own) error

	// Release gives the lease back. A reservation stays.
	Release(ctx context.Context, own *Own) error

	// Watch calls f with all leases, in a Change that is a Snapshot, and then with each Change. It returns only with an
	// error: when it cannot be sure to have seen everything. To call it again begins with another snapshot.
	Watch(ctx context.Context, f func(Change)) error
}

// A Request is what a node asks for.
type Request struct {
	// Attrs are what is to be written. With vxlan, a zero MAC stands for that of the lease that is found for the
	// PublicIP, so that a node keeps its MAC when it starts again, or else for a random one.
	Attrs

	// OneMAC gives both families one MAC, that of IPv4 if they have different ones.
	OneMAC bool

	// Previous is the subnet that the node had before, and gets again if it is free. Of several leases with the
	// PublicIP, it is preferred.
	Previous Subnet
}

// An Own is the lease of this node.
type Own struct {
	Lease
	Record Record

	// Until is when the lease ends if it is not renewed, by the clock of this process: the time of the request and
	// the time to live. Zero for a reservation, which does not end.
	Until time.Time
}

// Underlay returns the addresses of a tunnel's end: the public addresses, with the second only if there are both.
func (o *Own) Underlay() (local, local6 netip.Addr) {
	if o.IPv4.PublicIP.IsValid() {
		return o.IPv4.PublicIP, o.IPv6.PublicIP
	}
	return o.IPv6.PublicIP, netip.Addr{}
}

// A Record is a lease in a store, as it is written there.
type Record struct {
	Key   string     // without the prefix of the store: see Subnet.Key
	Value []byte     // see Attrs.Value
	Node  *NodeLease // stands for Value if it is not nil; Key is the name of the node

	Created  int64 // the revision of the store with which the key came; the smaller, the older
	Revision int64 // and that of its last change
	Expires  bool  // it ends if it is not renewed; false for a reservation
	Ours     bool  // its last change was made through this Store
}

// Lease reads the lease: see ParseLease and NodeLease.Lease. The error is a [*Refusal].
func (r *Record) Lease() (Lease, error) {
	if r.Node != nil {
		return r.Node.Lease(r.Key)
	}
	return ParseLease(r.Key, r.Value)
}

// String returns what is written, in one line.
func (r *Record) String() string {
	if r.Node != nil {
		return r.Node.String()
	}
	return string(r.Value)
}

// sum returns a hash of what is written.
func (r *Record) sum(seed maphash.Seed) uint64 {
	if r.Node != nil {
		return maphash.Comparable(seed, *r.Node)
	}
	return maphash.Bytes(seed, r.Value)
}

// A Change says which leases have come, changed and gone.
type Change struct {
	Snapshot bool // Set are all leases, and others are gone
	Set      []Record
	Deleted  []string // their keys
}

// A KV is the part of a store that [Registry] needs: keys with values that end after a time, and transactions on one of
// them. A key here is that of a lease, without the prefix of the store. The methods are those of a Store where they have the name.
type KV interface {
	Config(ctx context.Context) ([]byte, error) // JSON of the network; ErrNoNetwork
	List(ctx context.Context) ([]Record, error)

	// Create writes a key that is not there. The error wraps ErrTaken if it is.
	Create(ctx context.Context, key string, value []byte) (Record, error)

	// Update writes a key if it has the revision of r, and makes it last for TTL if it expires. The error wraps
	// ErrLost if it has another revision, unless that is one of an Update of this KV that has failed for the caller
	// and not for the store.
	Update(ctx context.Context, r Record, value []byte) (Record, error)

	// Delete removes a key if it has the revision of r. The error wraps ErrLost if it has another one.
	Delete(ctx context.Context, r Record) error

	Watch(ctx context.Context, f func(Change)) error
	TTL() time.Duration // of the keys that Create writes
}

// DefaultTTL is the time to live of leases, as flannel has it.
const DefaultTTL = 24 * time.Hour
