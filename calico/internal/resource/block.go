package resource

import (
	"net/netip"
	"strings"
)

// A Block is a range of addresses that belongs to one node, or to none.
type Block struct {
	Prefix   netip.Prefix
	Node     string // that has it; "" if none does
	Borrowed []Address
}

// An Address is one of a block that lives on another node than the block.
type Address struct {
	IP   netip.Addr
	Node string
}

// rawBlock has in Allocations, for each address, the number of its attributes; null if nobody has it.
type rawBlock struct {
	CIDR        string `json:"cidr"`
	Affinity    string `json:"affinity"`
	Allocations []*int `json:"allocations"`
	Deleted     bool   `json:"deleted"`
	Attributes  []struct {
		Secondary map[string]string `json:"secondary"`
	} `json:"attributes"`
}

// Blocks have 2 to the power of 12 addresses at most: blockSize of an IPPool is 20 to 32, or 116 to 128.
const maxBlockBits = 12

func (r *rawBlock) read(key netip.Prefix) (*Block, error) {
	p, err := prefix("cidr", r.CIDR)
	if err != nil {
		return nil, err
	}
	if p != key {
		return nil, wrong("cidr", r.CIDR, "must be that of the key, %v", key)
	}
	if p.Addr().BitLen()-p.Bits() > maxBlockBits {
		return nil, wrong("cidr", r.CIDR, "must have at most %d addresses", 1<<maxBlockBits)
	}
	if most := 1 << (p.Addr().BitLen() - p.Bits()); len(r.Allocations) > most {
		return nil, wrong("allocations", len(r.Allocations), "must be at most %d", most)
	}
	b := &Block{Prefix: p}
	if r.Deleted {
		return b, nil
	}
	node, isHost := strings.CutPrefix(r.Affinity, "host:")
	if isHost {
		b.Node = node
	}
	a := p.Addr()
	for _, n := range r.Allocations {
		if n != nil && *n >= 0 && *n < len(r.Attributes) {
			if on := r.Attributes[*n].Secondary["node"]; on != "" && on != b.Node && len(on) <= maxName {
				b.Borrowed = append(b.Borrowed, Address{a, on})
			}
		}
		a = a.Next()
	}
	return b, nil
}

// An Affinity says how far the claim of a node to a block has got.
type Affinity struct {
	State string `json:"state"`
}

func (a *Affinity) read() (*Affinity, error) { return a, nil }

// Confirmed reports whether the claim is not still to be made.
func (a *Affinity) Confirmed() bool { return a.State != "pending" }
