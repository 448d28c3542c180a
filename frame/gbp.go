package frame

// GBP is the mark of VXLAN group policy (draft-smith-vxlan-group-policy-05): the group of the
// sender of a frame. The zero value is no mark.
//
// Only tunnels carry it. For frames from other ports, a setting of the attachment has the
// group. Forwarding and routing keep the mark; frames of the switch itself have none.
type GBP struct {
	ID        uint16 // group policy id
	DontLearn bool   // D: the source MAC must not be learned
	Applied   bool   // A: a policy has been applied to the frame
}
