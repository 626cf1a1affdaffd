package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/internal/apply"
	"github.com/gpupool/gpupool-operator/internal/plan"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// answerLasts is how long an answer of the API server about itself is believed. Its features change with its version
// and settings only.
const answerLasts = time.Hour

// server knows what the API server can do. There is no API to read feature gates, so it is asked to accept, in a dry
// run, an object that needs the feature: and only if a spec needs to know and no object in the cluster shows it.
type server struct {
	writer *apply.Writer
	clock  clock.PassiveClock

	mu    sync.Mutex
	facts plan.ServerFacts
	asked time.Time // zero before the first answer
}

// ask returns what a spec that selects devices by how they are shared needs to know. A class among have that does so
// is the answer.
func (s *server) ask(ctx context.Context, have []client.Object) (plan.ServerFacts, error) {
	for _, object := range have {
		if class, ok := object.(*resourcev1.DeviceClass); ok && asksForSharing(class.Spec.Selectors) {
			return plan.ServerFacts{SharedDevices: true}, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.IsZero() && s.clock.Since(s.asked) < answerLasts {
		return s.facts, nil
	}
	expression := resourceac.CELDeviceSelector().WithExpression(selector.Shared())
	accepts, err := s.writer.Accepts(ctx, resourceac.DeviceClass("gpupool-probe").WithSpec(
		resourceac.DeviceClassSpec().WithSelectors(resourceac.DeviceSelector().WithCEL(expression))))
	if err != nil {
		return plan.ServerFacts{}, fmt.Errorf("asking the API server for shared devices: %w", err)
	}
	s.facts, s.asked = plan.ServerFacts{SharedDevices: accepts}, s.clock.Now()
	return s.facts, nil
}

func asksForSharing(selectors []resourcev1.DeviceSelector) bool {
	for _, s := range selectors {
		if s.CEL != nil && (s.CEL.Expression == selector.Shared() || s.CEL.Expression == selector.Not(selector.Shared())) {
			return true
		}
	}
	return false
}
