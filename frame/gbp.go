package frame

// GBP is the mark of VXLAN group based policy (draft-smith-vxlan-group-policy-05): the group
// of who sent a frame, and what was done about it. The zero value is no mark.
//
// A tunnel that is configured so reads and writes it; on ports it has no place, so that an
// attachment may say which group what enters there is of. Who forwards or routes a frame
// leaves its mark; what the switch itself sends, answers included, has none.
type GBP struct {
	ID        uint16 // group policy id
	DontLearn bool   // D: the source MAC is not to be learned
	Applied   bool   // A: a policy has been applied to the frame
}
