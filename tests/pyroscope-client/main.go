// Calls a querier.v1.QuerierService, and settings.v1.SettingsService, with the client that Pyroscope's own protos generate, and prints
// what it answered as JSON for the Rust test to judge.
//
// In: the base URL as the first argument, and on standard input a JSON list of
// {"name", "method", "request", "codec": "proto"|"json", "gzip": bool}; a request is the protobuf message in
// protobuf's JSON. Out: one line a call, {"name", "ok": message} or {"name", "code", "message"}.
// Deadline: 30 s a call. Exit code 2 for a fault of this program or its input.
//
// With `receive N` it is a push.v1.PusherService instead: see receive.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	settingsv1 "github.com/grafana/pyroscope/api/gen/proto/go/settings/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/settings/v1/settingsv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type call struct {
	Name    string          `json:"name"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Codec   string          `json:"codec"`
	Gzip    bool            `json:"gzip"`
}

type answer struct {
	Name    string          `json:"name"`
	Ok      json.RawMessage `json:"ok,omitempty"`
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}

// invoke reads the request into its message, calls, and hands back the answer's message.
func invoke[Req, Res any, P interface {
	*Req
	proto.Message
}, R interface {
	*Res
	proto.Message
}](raw json.RawMessage, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error)) (proto.Message, error) {
	message := new(Req)
	if err := protojson.Unmarshal(raw, P(message)); err != nil {
		fatal("request: %v", err)
	}
	request := connect.NewRequest(message)
	request.Header().Set("X-Scope-OrgID", "anonymous")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	response, err := method(ctx, request)
	if err != nil {
		return nil, err
	}
	return R(response.Msg), nil
}

func run(url string, c call) (proto.Message, error) {
	var options []connect.ClientOption
	if c.Codec == "json" {
		options = append(options, connect.WithProtoJSON())
	}
	if c.Gzip {
		options = append(options, connect.WithSendGzip())
	}
	client := querierv1connect.NewQuerierServiceClient(http.DefaultClient, url, options...)
	switch c.Method {
	case "ProfileTypes":
		return invoke[querierv1.ProfileTypesRequest, querierv1.ProfileTypesResponse](c.Request, client.ProfileTypes)
	case "LabelNames":
		return invoke[typesv1.LabelNamesRequest, typesv1.LabelNamesResponse](c.Request, client.LabelNames)
	case "LabelValues":
		return invoke[typesv1.LabelValuesRequest, typesv1.LabelValuesResponse](c.Request, client.LabelValues)
	case "Series":
		return invoke[querierv1.SeriesRequest, querierv1.SeriesResponse](c.Request, client.Series)
	case "SelectMergeStacktraces":
		return invoke[querierv1.SelectMergeStacktracesRequest, querierv1.SelectMergeStacktracesResponse](c.Request, client.SelectMergeStacktraces)
	case "SelectMergeSpanProfile":
		return invoke[querierv1.SelectMergeSpanProfileRequest, querierv1.SelectMergeSpanProfileResponse](c.Request, client.SelectMergeSpanProfile)
	case "SelectMergeProfile":
		return invoke[querierv1.SelectMergeProfileRequest, profilev1.Profile](c.Request, client.SelectMergeProfile)
	case "SelectSeries":
		return invoke[querierv1.SelectSeriesRequest, querierv1.SelectSeriesResponse](c.Request, client.SelectSeries)
	case "SelectHeatmap":
		return invoke[querierv1.SelectHeatmapRequest, querierv1.SelectHeatmapResponse](c.Request, client.SelectHeatmap)
	case "Diff":
		return invoke[querierv1.DiffRequest, querierv1.DiffResponse](c.Request, client.Diff)
	case "AnalyzeQuery":
		return invoke[querierv1.AnalyzeQueryRequest, querierv1.AnalyzeQueryResponse](c.Request, client.AnalyzeQuery)
	case "settings.v1.SettingsService/Get":
		settings := settingsv1connect.NewSettingsServiceClient(http.DefaultClient, url, options...)
		return invoke[settingsv1.GetSettingsRequest, settingsv1.GetSettingsResponse](c.Request, settings.Get)
	case "GetProfileStats":
		return invoke[typesv1.GetProfileStatsRequest, typesv1.GetProfileStatsResponse](c.Request, client.GetProfileStats)
	}
	fatal("no method %q", c.Method)
	return nil, nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "receive" {
		away, err := strconv.Atoi(os.Args[2])
		if err != nil {
			fatal("receive: %v", err)
		}
		receive(away)
	}
	if len(os.Args) != 2 {
		fatal("usage: pyroscope-client URL < calls.json, or pyroscope-client receive REQUESTS-TURNED-AWAY")
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fatal("standard input: %v", err)
	}
	var calls []call
	if err := json.Unmarshal(input, &calls); err != nil {
		fatal("standard input: %v", err)
	}
	out := json.NewEncoder(os.Stdout)
	for _, c := range calls {
		result := answer{Name: c.Name}
		message, err := run(os.Args[1], c)
		if err != nil {
			result.Code = connect.CodeOf(err).String()
			result.Message = err.Error()
		} else if result.Ok, err = protojson.Marshal(message); err != nil {
			fatal("%s: %v", c.Name, err)
		}
		if err := out.Encode(result); err != nil {
			fatal("standard output: %v", err)
		}
	}
}

func fatal(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(2)
}
