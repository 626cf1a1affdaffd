package selector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
)

// features are the CEL features of the Kubernetes minor that this version is built against.
var features = dracel.Features{EnableConsumableCapacity: true}

// Compiled is an expression that the API server accepts in a device selector.
type Compiled struct {
	result dracel.CompilationResult
}

// Expression is the text that was compiled.
func (c *Compiled) Expression() string { return c.result.Expression }

// Matches evaluates the expression on one device. An error is what makes the scheduler refuse a pod. There is nothing
// to cancel: it reads one device, and its cost is bounded.
func (c *Compiled) Matches(device dracel.Device) (bool, error) {
	ctx := context.Background() //nolint:forbidigo // see above: the library wants one
	matches, _, err := c.result.DeviceMatches(ctx, device)
	return matches, dracel.EnhanceRuntimeError(err)
}

// Compiler compiles expressions and remembers the result of the most recent ones. It is safe for concurrent use.
type Compiler struct {
	known *lru.Cache
}

// NewCompiler makes a Compiler that remembers up to size results.
func NewCompiler(size int) *Compiler {
	return &Compiler{known: lru.New(size)}
}

type compilation struct {
	compiled *Compiled
	err      error
}

// Compile compiles an expression as the API server does for a new device selector. The error says why the server would
// refuse it: it is too long, does not compile, is not a bool, or may cost too much.
func (c *Compiler) Compile(expression string) (*Compiled, error) {
	if result, ok := c.known.Get(expression); ok {
		known := result.(compilation)
		return known.compiled, known.err
	}
	compiled, err := compile(expression)
	c.known.Add(expression, compilation{compiled, err})
	return compiled, err
}

func compile(expression string) (*Compiled, error) {
	if len(expression) > resourcev1.CELSelectorExpressionMaxLength {
		return nil, fmt.Errorf("the expression has %d bytes, and Kubernetes allows %d",
			len(expression), resourcev1.CELSelectorExpressionMaxLength)
	}
	options := dracel.Options{EnvType: ptr.To(environment.NewExpressions)}
	result := dracel.GetCompiler(features).CompileCELExpression(expression, options)
	if result.Error != nil {
		return nil, compileError(result.Error.Detail)
	}
	if result.MaxCost > resourcev1.CELSelectorExpressionMaxCost {
		return nil, costError(result.MaxCost)
	}
	return &Compiled{result: result}, nil
}

// compileError keeps what CEL says and where, and drops the picture of the expression that it draws below.
func compileError(detail string) error {
	var problems []string
	for line := range strings.Lines(detail) {
		line = strings.TrimSpace(line)
		if _, problem, found := strings.Cut(line, "ERROR: <input>:"); found {
			problems = append(problems, "at line and column "+problem)
		} else if line != "" && !strings.HasPrefix(line, "|") {
			problems = append(problems, line)
		}
	}
	return errors.New(strings.Join(problems, "; "))
}

// costError names the usual culprit when the estimate is not bounded at all: a text function on a string whose length
// CEL has lost track of.
func costError(cost uint64) error {
	if cost > math.MaxUint32 {
		return fmt.Errorf("the expression has no bound on its cost; "+
			"functions that read text (contains, matches, lowerAscii) must not follow orValue: write %s instead",
			`has(device.attributes["<domain>"].<name>) && device.attributes["<domain>"].<name>.contains("x")`)
	}
	return fmt.Errorf("the expression may cost %d, and Kubernetes allows %d; make it simpler",
		cost, uint64(resourcev1.CELSelectorExpressionMaxCost))
}
