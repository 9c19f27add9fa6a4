//! Private RabbitMQ nodes.
