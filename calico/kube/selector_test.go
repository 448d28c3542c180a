package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
)

// testSelector compares a selector with that of Kubernetes' own library, on labels with and without what it is about.
func testSelector(t *testing.T, key, value, operator string) {
	t.Helper()
	s := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOperator(operator)}}}
	if operator == "In" || operator == "NotIn" {
		s.MatchExpressions[0].Values = []string{value, "other"}
	}
	theirs, err := metav1.LabelSelectorAsSelector(s)
	text, terr := podSelector(s)
	if err != nil { // ours may be less strict: it is one selector all the same, or none
		theirs = nil
	}
	if terr != nil {
		return
	}
	ours, perr := selector.Parse(text)
	if perr != nil {
		if theirs != nil {
			t.Fatalf("%s: %v", text, perr)
		}
		return
	}
	if theirs == nil {
		return
	}
	for _, l := range []map[string]string{{}, {key: value}, {key: "other"}, {key: "third"}, {"unrelated": value}, {key: value, "b": "x"}} {
		want := theirs.Matches(labels.Set(l))
		with := selector.Labels{labelOrchestrator: orchestrator}
		for k, v := range l {
			with[k] = v
		}
		if got := ours.Matches(with); got != want {
			t.Fatalf("%s on %v: %v, want %v", text, l, got, want)
		}
	}
}

func TestSelector(t *testing.T) {
	for _, operator := range []string{"In", "NotIn", "Exists", "DoesNotExist"} {
		for _, key := range []string{"app", "app.kubernetes.io/name", "a-b_c", "all", "has", "in", "not"} {
			testSelector(t, key, "web", operator)
			testSelector(t, key, "", operator)
		}
	}
}
