package vtep

import "github.com/vxswitch/vxswitch/setting"

// The words of the settings.
var (
	dfWords   = []string{DFDefault: "default", DFSet: "set", DFUnset: "unset", DFInherit: "inherit"}
	ecnWords  = []string{ECNDefault: "default", ECNNormal: "normal", ECNCompat: "compat", ECNRFC3168: "rfc3168"}
	dscpWords = []string{DSCPDefault: "default", DSCPKeep: "keep", DSCPInherit: "inherit", DSCPPriority: "priority"}
	peerWords = []string{AnyPeer: "any", ListedOnly: "listed", ListedPerVNI: "listed-per-vni"}
)

// String returns the mode as settings call it.
func (d DF) String() string { return setting.Name(dfWords, d) }

// MarshalText implements [encoding.TextMarshaler].
func (d DF) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes.
func (d *DF) UnmarshalText(text []byte) error { return setting.Parse(d, dfWords, text) }

// String returns the mode as settings call it.
func (e ECN) String() string { return setting.Name(ecnWords, e) }

// MarshalText implements [encoding.TextMarshaler].
func (e ECN) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what String writes.
func (e *ECN) UnmarshalText(text []byte) error { return setting.Parse(e, ecnWords, text) }

// String returns the mode as settings call it.
func (d DSCP) String() string { return setting.Name(dscpWords, d) }

// MarshalText implements [encoding.TextMarshaler].
func (d DSCP) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes.
func (d *DSCP) UnmarshalText(text []byte) error { return setting.Parse(d, dscpWords, text) }

// String returns the policy as settings call it.
func (p PeerPolicy) String() string { return setting.Name(peerWords, p) }

// MarshalText implements [encoding.TextMarshaler].
func (p PeerPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *PeerPolicy) UnmarshalText(text []byte) error { return setting.Parse(p, peerWords, text) }
