//! push.v1 as Pyroscope's protos have it (`api/push/v1/push.proto`, `api/types/v1/types.proto`), by hand.

/// push.v1.PushRequest.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushRequest {
    /// A series for each label set.
    #[prost(message, repeated, tag = "1")]
    pub series: Vec<RawProfileSeries>,
}

/// push.v1.RawProfileSeries.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawProfileSeries {
    /// What tells the series from others, by name in order; `__name__` and `service_name` are among them.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
    /// The series' profiles: one here.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<RawSample>,
}

/// types.v1.LabelPair.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LabelPair {
    /// The label's name: `service_name`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The label's value; labels of this node without one are left out.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// push.v1.RawSample.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RawSample {
    /// pprof, packed with gzip.
    #[prost(bytes = "vec", tag = "1")]
    pub raw_profile: Vec<u8>,
    /// A random UUID, the same when the request is sent again.
    #[prost(string, tag = "2")]
    pub id: String,
}
