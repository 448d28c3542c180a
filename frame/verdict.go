package frame

import "fmt"

// Action is the action of a verdict.
type Action uint8

// Actions.
const (
	ActContinue Action = iota // the next step of decide
	ActForward                // to one Dest
	ActFlood                  // to every member of the VSI that split horizon allows
	ActReply                  // back to where the frame came from
	ActReenter                // decide again, as a frame of the gateway
	ActConsume                // the stage has taken the frame
	ActDrop                   // count it under a reason
)

// Verdict is a decision on a frame, in one word. The zero value is Continue.
type Verdict uint64

const (
	verdictReason = 32
	verdictAction = 40
	verdictLocal  = 48
)

// Verdicts without a parameter.
const (
	Continue   Verdict = Verdict(ActContinue) << verdictAction
	FloodAll   Verdict = Verdict(ActFlood) << verdictAction
	FloodLocal Verdict = FloodAll | 1<<verdictLocal // no tunnels
	Reply      Verdict = Verdict(ActReply) << verdictAction
	Reenter    Verdict = Verdict(ActReenter) << verdictAction
	Consume    Verdict = Verdict(ActConsume) << verdictAction
)

// Forward returns the verdict to send the frame to d.
func Forward(d Dest) Verdict { return Verdict(ActForward)<<verdictAction | Verdict(d) }

// Drop returns the verdict to drop the frame for a reason.
func Drop(r Reason) Verdict {
	return Verdict(ActDrop)<<verdictAction | Verdict(r)<<verdictReason
}

// Action returns the action.
func (v Verdict) Action() Action { return Action(v >> verdictAction) }

// Dest returns the destination of a Forward.
func (v Verdict) Dest() Dest { return Dest(v) }

// Reason returns the reason of a Drop.
func (v Verdict) Reason() Reason { return Reason(v >> verdictReason) }

// String returns the verdict as text, for tests and traces.
func (v Verdict) String() string {
	switch v.Action() {
	case ActContinue:
		return "continue"
	case ActForward:
		return "forward " + v.Dest().String()
	case ActFlood:
		if v == FloodLocal {
			return "flood local"
		}
		return "flood"
	case ActReply:
		return "reply"
	case ActReenter:
		return "reenter"
	case ActConsume:
		return "consume"
	case ActDrop:
		return "drop " + v.Reason().String()
	}
	return fmt.Sprintf("verdict(%#x)", uint64(v))
}
