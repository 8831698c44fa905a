// Bench of vt027_handshake_register: valid/ready pipeline register with flush.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_in_ready;
    int errortime_in_ready;
    int errors_out_valid;
    int errortime_out_valid;
    int errors_out_data;
    int errortime_out_data;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic       flush;
  logic       in_valid;
  logic [7:0] in_data;
  logic       out_ready;
  wire        in_ready_ref;
  wire        in_ready_dut;
  wire        out_valid_ref;
  wire        out_valid_dut;
  wire  [7:0] out_data_ref;
  wire  [7:0] out_data_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .flush(flush),
    .in_valid(in_valid),
    .in_data(in_data),
    .in_ready(in_ready_ref),
    .out_valid(out_valid_ref),
    .out_data(out_data_ref),
    .out_ready(out_ready)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .flush(flush),
    .in_valid(in_valid),
    .in_data(in_data),
    .in_ready(in_ready_dut),
    .out_valid(out_valid_dut),
    .out_data(out_data_dut),
    .out_ready(out_ready)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_in_ready = in_ready_ref ^ in_ready_ref;
  wire        match_in_ready = (in_ready_dut ^ open_in_ready) === (in_ready_ref ^ open_in_ready);
  wire        open_out_valid = out_valid_ref ^ out_valid_ref;
  wire        match_out_valid = (out_valid_dut ^ open_out_valid) === (out_valid_ref ^ open_out_valid);
  wire  [7:0] open_out_data = out_data_ref ^ out_data_ref;
  wire        match_out_data = (out_data_dut ^ open_out_data) === (out_data_ref ^ open_out_data);
  wire        tb_match = match_in_ready && match_out_valid && match_out_data;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_in_ready) begin
      if (stats1.errors_in_ready == 0) stats1.errortime_in_ready = $time;
      stats1.errors_in_ready = stats1.errors_in_ready + 1;
    end
    if (!match_out_valid) begin
      if (stats1.errors_out_valid == 0) stats1.errortime_out_valid = $time;
      stats1.errors_out_valid = stats1.errors_out_valid + 1;
    end
    if (!match_out_data) begin
      if (stats1.errors_out_data == 0) stats1.errortime_out_data = $time;
      stats1.errors_out_data = stats1.errors_out_data + 1;
    end
  end

  reg [1:0] producer;
  reg [1:0] consumer;
  initial begin
    reset <= 1'b1;
    flush <= 1'b0;
    in_valid <= 1'b1;
    in_data <= 8'ha5;
    out_ready <= 1'b0;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    in_valid <= 1'b0;
    @(posedge clk) out_ready <= 1'b1;
    @(posedge clk);
    // Full throughput, then a stall with changing offers, then draining.
    repeat (8) @(posedge clk) begin
      in_valid <= 1'b1;
      in_data <= $random;
    end
    out_ready <= 1'b0;
    repeat (4) @(posedge clk) in_data <= $random;
    in_valid <= 1'b0;
    repeat (2) @(posedge clk) in_data <= $random;
    out_ready <= 1'b1;
    repeat (3) @(posedge clk) in_data <= $random;
    // Phases with a fast or a slow side.
    repeat (32) begin
      producer = $random;
      consumer = $urandom;
      repeat (14) @(posedge clk) begin
        in_valid <= ($random & 3) >= {1'b0, producer};
        in_data <= $random;
        out_ready <= ($random & 3) >= {1'b0, consumer};
        flush <= ($urandom & 15) == 0;
        reset <= ($urandom & 63) == 0;
      end
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_in_ready != 0)
      $display("Hint: Output 'in_ready' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_in_ready, stats1.errortime_in_ready);
    else
      $display("Hint: Output 'in_ready' has no mismatches.");
    if (stats1.errors_out_valid != 0)
      $display("Hint: Output 'out_valid' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_out_valid, stats1.errortime_out_valid);
    else
      $display("Hint: Output 'out_valid' has no mismatches.");
    if (stats1.errors_out_data != 0)
      $display("Hint: Output 'out_data' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_out_data, stats1.errortime_out_data);
    else
      $display("Hint: Output 'out_data' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
