//! push.v1 as Pyroscope's protos have it (`api/push/v1/push.proto`, `api/types/v1/types.proto`), by hand.

/// push.v1.PushRequest.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushRequest {
    /// One for each label set.
    #[prost(message, repeated, tag = "1")]
    pub series: Vec<RawProfileSeries>,
}

/// push.v1.RawProfileSeries.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawProfileSeries {
    /// Its labels.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
    /// Its profiles.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<RawSample>,
}

/// types.v1.LabelPair.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LabelPair {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// push.v1.RawSample.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RawSample {
    /// pprof, packed with gzip.
    #[prost(bytes = "vec", tag = "1")]
    pub raw_profile: Vec<u8>,
    /// A UUID.
    #[prost(string, tag = "2")]
    pub id: String,
}
