package memory

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	report  = underlaytest.Report
	reports = underlaytest.Reports
)

var (
	must        = check.OK
	endpoint    = underlaytest.Endpoint
	to          = underlaytest.To
	send        = underlaytest.Send
	receive     = underlaytest.Receive
	receiveFrom = underlaytest.ReceiveFrom
	payloads    = underlaytest.Payloads
	quiet       = underlaytest.Quiet
)
